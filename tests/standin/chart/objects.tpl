{{- $standin := .Files.Get "standin.yaml" | fromYaml }}
{{- $labels := dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/managed-by" .Release.Service "helm.sh/chart" (printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_")) }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-values
  labels: {{- toYaml $labels | nindent 4 }}
data:
  values.yaml: {{ toYaml .Values | toJson }}
{{- range $workload := $standin.workloads }}
{{- $section := include "standin.section" (dict "root" $ "name" $workload.name) | fromYaml }}
{{- /* as real charts do: what is optional needs `enabled: true`, the rest goes away with `enabled: false` */}}
{{- if hasKey $section "enabled" | ternary (get $section "enabled") (not $workload.optional) }}
{{- $selector := dict "standin/workload" $workload.name }}
{{- $own := merge (dict) $selector $standin.labels $labels }}
---
apiVersion: apps/v1
kind: {{ $workload.kind }}
metadata:
  name: {{ $workload.name }}
  namespace: {{ $workload.namespace | default $.Release.Namespace }}
  labels: {{- toYaml (omit $own "standin/workload") | nindent 4 }}
spec:
  {{- if ne $workload.kind "DaemonSet" }}
  replicas: {{ coalesce $section.replicaCount $section.replicas $.Values.replicaCount $.Values.replicas 1 | int }}
  {{- end }}
  {{- if eq $workload.kind "StatefulSet" }}
  serviceName: {{ $workload.name }}
  {{- end }}
  selector:
    matchLabels: {{- toYaml $selector | nindent 6 }}
  template:
    metadata:
      labels: {{- toYaml $own | nindent 8 }}
      annotations:
        checksum/values: {{ toYaml $.Values | sha256sum }}
    spec:
      {{- with coalesce $section.nodeSelector $.Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      tolerations: {{- coalesce $section.tolerations $.Values.tolerations $workload.tolerations | toYaml | nindent 8 }}
      containers:
        - name: main
          image: {{ include "standin.image" (dict "root" $ "section" $section "default" $workload.image) | quote }}
          env:
            {{- range $standin.environment }}
            - name: {{ .name }}
              value: {{ include "standin.at" (dict "root" $ "path" .path) | quote }}
            {{- end }}
            - name: NODE_NAME
              valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- end }}
{{- end }}
{{- range $standin.objects }}
---
apiVersion: {{ .apiVersion }}
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  labels: {{- toYaml $labels | nindent 4 }}
spec: {{- toYaml $.Values | nindent 2 }}
{{- end }}
