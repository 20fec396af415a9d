import * as plimsoll from "@pulumi/plimsoll";
import * as pulumi from "@pulumi/pulumi";

const research = new plimsoll.Queue("ts-research", {
    displayName: pulumi.secret("for research only"),
    resources: { gpu: { quota: 8, limit: 16 } },
});

const training = new plimsoll.Queue(
    "ts-training",
    { parentQueue: research.queueName, resources: { gpu: { quota: 4 } } },
    { ignoreChanges: ["spec.priority"] },
);

const chat = new plimsoll.Workspace("ts-chat", {
    queue: training.queueName,
    resource: { labelSelector: { matchLabels: { pool: "a100" } } },
    inference: {
        replicas: 2,
        template: { spec: { containers: [{ name: "main", image: "registry.k8s.io/pause:3.10" }] } },
    },
});

export const labels = training.podLabels;
export const workspace = chat.workspaceName;
