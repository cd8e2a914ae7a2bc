{{- /* The part of the values that speaks of one workload: of the keys whose words stand in its name, the longest. */}}
{{- define "standin.section" }}
{{- $found := "" }}
{{- range $key, $value := .root.Values }}
{{- if and (kindIs "map" $value) (contains (printf "-%s-" (kebabcase $key)) (printf "-%s-" $.name)) (gt (len $key) (len $found)) }}
{{- $found = $key }}
{{- end }}
{{- end }}
{{- if $found }}{{ get .root.Values $found | toYaml }}{{ else }}{}{{ end }}
{{- end }}

{{- /* REPOSITORY:TAG, from the section's values, else the chart's, else the default. Both usual layouts are known:
       repository, image and version as three strings, or a map `image` with registry, repository and tag. */}}
{{- define "standin.image" }}
{{- $folder := .default.folder }}{{ $name := .default.name }}{{ $tag := .default.tag }}
{{- range $values := list .root.Values .section }}
{{- if kindIs "map" $values.image }}
{{- with $values.image.repository }}{{ $folder = dir . }}{{ $name = base . }}{{ end }}
{{- with $values.image.registry }}{{ $folder = $folder | eq "." | ternary (print $values.image.registry) (printf "%s/%s" $values.image.registry $folder) }}{{ end }}
{{- with $values.image.tag }}{{ $tag = toString . }}{{ end }}
{{- end }}
{{- if kindIs "string" $values.image }}{{ $name = $values.image }}{{ end }}
{{- if kindIs "string" $values.repository }}{{ $folder = $values.repository }}{{ end }}
{{- with $values.version }}{{ $tag = toString . }}{{ end }}
{{- end }}
{{- printf "%s/%s:%s" $folder $name $tag }}
{{- end }}

{{- /* What stands at a dotted path of the values, or nothing. */}}
{{- define "standin.at" }}
{{- $value := .root.Values }}
{{- range splitList "." .path }}
{{- if kindIs "map" $value }}{{ $value = get $value . }}{{ else }}{{ $value = "" }}{{ end }}
{{- end }}
{{- if not (kindIs "invalid" $value) }}{{ toString $value }}{{ end }}
{{- end }}
