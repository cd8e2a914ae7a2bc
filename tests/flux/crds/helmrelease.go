// Package crds names the Go types from which Flux's HelmRelease CRD is generated: helm-controller itself, which
// holds the CRD as a file, cannot be had from every module proxy, its API can.
package crds

import _ "github.com/fluxcd/helm-controller/api/v2"
