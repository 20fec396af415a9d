// Kai runs one program of the KAI Scheduler: its first argument is the name, the others are the program's own.
//
// One binary, because the programs share nearly all packages. Except for admission and binder, which need a few lines
// to put their plugins together, each is the Run function of its package.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	binder "github.com/NVIDIA/KAI-scheduler/cmd/binder/app"
	nodescaleadjuster "github.com/NVIDIA/KAI-scheduler/cmd/nodescaleadjuster/app"
	podgroupcontroller "github.com/NVIDIA/KAI-scheduler/cmd/podgroupcontroller/app"
	podgrouper "github.com/NVIDIA/KAI-scheduler/cmd/podgrouper/app"
	queuecontroller "github.com/NVIDIA/KAI-scheduler/cmd/queuecontroller/app"
	scheduler "github.com/NVIDIA/KAI-scheduler/cmd/scheduler/app"
	admissionplugins "github.com/NVIDIA/KAI-scheduler/pkg/admission/plugins"
	"github.com/NVIDIA/KAI-scheduler/pkg/admission/webhook/v1alpha2/gpusharing"
	"github.com/NVIDIA/KAI-scheduler/pkg/admission/webhook/v1alpha2/podhooks"
	binderplugins "github.com/NVIDIA/KAI-scheduler/pkg/binder/plugins"
	bindersharing "github.com/NVIDIA/KAI-scheduler/pkg/binder/plugins/gpusharing"
	binderk8s "github.com/NVIDIA/KAI-scheduler/pkg/binder/plugins/k8s-plugins"
	"github.com/NVIDIA/KAI-scheduler/pkg/common/constants"
)

const loopback = "127.0.0.1"

var programs = map[string]func() error{
	"scheduler":          scheduler.RunApp,
	"binder":             runBinder,
	"podgrouper":         podgrouper.Run,
	"admission":          runAdmission,
	"queuecontroller":    runQueueController,
	"podgroupcontroller": runPodGroupController,
	"nodescaleadjuster":  nodescaleadjuster.Run,
}

func main() {
	// Two programs have no flag for it, and would both listen on :8080.
	metrics.DefaultBindAddress = "0"
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: kai PROGRAM [FLAG...]")
		os.Exit(2)
	}
	run := programs[os.Args[1]]
	os.Args = os.Args[1:]
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func setLogger() {
	ctrl.SetLogger(zap.New())
}

func runBinder() error {
	options := binder.InitOptions(nil)
	pflag.Parse()
	setLogger()
	app, err := binder.New(options, ctrl.GetConfigOrDie())
	if err != nil {
		return err
	}
	kubernetes, err := binderk8s.New(app.K8sInterface, app.InformerFactory, int64(options.VolumeBindingTimeoutSeconds))
	if err != nil {
		return err
	}
	plugins := binderplugins.New()
	plugins.RegisterPlugin(kubernetes)
	plugins.RegisterPlugin(bindersharing.New(app.Client, options.GpuCdiEnabled))
	app.RegisterPlugins(plugins)
	return app.Run(ctrl.SetupSignalHandler())
}

// runAdmission is the admission program without its app, whose webhooks listen on every interface.
func runAdmission() error {
	port := flag.Int("webhook-addr", 0, "port of the webhooks")
	flag.Parse()
	setLogger()
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:        clientgoscheme.Scheme,
		WebhookServer: webhook.NewServer(webhook.Options{Host: loopback, Port: *port}),
	})
	if err != nil {
		return err
	}
	plugins := admissionplugins.New()
	plugins.RegisterPlugin(gpusharing.New(manager.GetClient(), true))
	name := constants.DefaultSchedulerName
	err = ctrl.NewWebhookManagedBy(manager).For(&corev1.Pod{}).
		WithDefaulter(podhooks.NewPodMutator(manager.GetClient(), plugins, name)).
		WithValidator(podhooks.NewPodValidator(manager.GetClient(), plugins, name)).
		Complete()
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func runQueueController() error {
	options := queuecontroller.InitOptions(flag.CommandLine)
	flag.Parse()
	setLogger()
	return queuecontroller.Run(options, ctrl.GetConfigOrDie(), ctrl.SetupSignalHandler())
}

func runPodGroupController() error {
	options := podgroupcontroller.InitOptions(nil)
	flag.Parse()
	setLogger()
	return podgroupcontroller.Run(options, ctrl.GetConfigOrDie(), ctrl.SetupSignalHandler())
}
