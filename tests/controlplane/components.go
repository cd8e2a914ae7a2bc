package main

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/util/compatibility"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllermanageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/spf13/pflag"
)

func (cp *controlPlane) runAPIServer(ctx context.Context, etcdURL string) error {
	options := apiserveroptions.NewServerRunOptions()
	if err := parse(options.Flags(), append([]string{
		"--etcd-servers=" + etcdURL,
		"--cert-dir=" + cp.path("certs"),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",   // else it takes the host's address, and
		"--endpoint-reconciler-type=none", // fails on a host that has none
		fmt.Sprintf("--secure-port=%d", cp.port()),
		"--service-cluster-ip-range=10.0.0.0/16",
		"--service-account-issuer=" + cp.server(),
		"--service-account-key-file=" + cp.path("sa.key"),
		"--service-account-signing-key-file=" + cp.path("sa.key"),
		"--token-auth-file=" + cp.path("tokens.csv"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged",
		"--kubelet-preferred-address-types=InternalIP",
	}, cp.apiServerFlags...)); err != nil {
		return err
	}
	options.SecureServing.Listener = cp.listener // bound already: no other process can take the port
	// The feature gates are shared by every component in the process.
	if err := compatibility.DefaultComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	completed, err := options.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fmt.Errorf("invalid flags: %v", errs)
	}
	return apiserver.Run(ctx, completed)
}

func (cp *controlPlane) runControllerManager(ctx context.Context) error {
	options, err := controllermanageroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	known := controllermanager.KnownControllers()
	disabled := controllermanager.ControllersDisabledByDefault()
	aliases := controllermanager.ControllerAliases()
	if err := parse(options.Flags(known, disabled, aliases), append([]string{
		"--kubeconfig=" + cp.path("internal.kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + cp.path("sa.key"),
		"--root-ca-file=" + cp.caFile(),
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}, cp.controllerFlags...)); err != nil {
		return err
	}
	config, err := options.Config(ctx, known, disabled, aliases)
	if err != nil {
		return err
	}
	return controllermanager.Run(ctx, config.Complete())
}

func (cp *controlPlane) runScheduler(ctx context.Context) error {
	options := scheduleroptions.NewOptions()
	if err := parse(*options.Flags, append([]string{
		"--kubeconfig=" + cp.path("internal.kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}, cp.schedulerFlags...)); err != nil {
		return err
	}
	config, instance, err := scheduler.Setup(ctx, options)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, config, instance)
}

// parse gives one component its flags, as its own command line would.
func parse(sections cliflag.NamedFlagSets, args []string) error {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, section := range sections.FlagSets {
		flags.AddFlagSet(section)
	}
	return flags.Parse(args)
}
