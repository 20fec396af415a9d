{{/* A DaemonSet: (dict "root" $ "part" name "command" command) */}}
{{- define "daemon" -}}
{{- $values := .root.Values -}}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ .root.Release.Name }}-{{ .part }}
  namespace: {{ .root.Release.Namespace }}
  labels: &labels
    app.kubernetes.io/name: {{ .part }}
    app.kubernetes.io/instance: {{ .root.Release.Name }}
spec:
  selector:
    matchLabels: *labels
  template:
    metadata:
      labels: *labels
    spec:
      {{- with $values.runtimeClassName }}
      runtimeClassName: {{ . }}
      {{- end }}
      {{- with $values.imagePullSecrets }}
      imagePullSecrets: {{ toJson . }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{ toJson . }}
      {{- end }}
      affinity: {{ toJson $values.affinity }}
      tolerations: {{ toJson $values.tolerations }}
      containers:
        - name: {{ .part }}
          image: {{ $values.image.repository }}:{{ default .root.Chart.AppVersion $values.image.tag }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          command: [{{ .command }}]
          env:
            {{- range $name, $value := dict "MIG_STRATEGY" $values.migStrategy "GFD_NO_TIMESTAMP" $values.noTimestamp "GFD_SLEEP_INTERVAL" $values.sleepInterval }}
            {{- if not (kindIs "invalid" $value) }}
            - name: {{ $name }}
              value: {{ $value | quote }}
            {{- end }}
            {{- end }}
            - name: NODE_NAME
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
{{- end }}
