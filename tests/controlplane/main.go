// Command controlplane runs a real Kubernetes control plane (etcd, API server,
// controller manager, scheduler) in one process on loopback, for integration
// tests. It writes the admin kubeconfig last: once that file exists, the API
// server is ready and the default service account is there, so pods can be
// created. All state lives under --dir; stop it with SIGTERM or SIGKILL.
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	readyTimeout   = 90 * time.Second
	attemptTimeout = 5 * time.Second
)

// extraFlags collects a repeatable flag whose values go to one component.
type extraFlags []string

func (e *extraFlags) String() string     { return strings.Join(*e, " ") }
func (e *extraFlags) Set(v string) error { *e = append(*e, v); return nil }

type controlPlane struct {
	dir        string
	kubeconfig string
	listener   net.Listener // the API server's
	token      string

	apiServerFlags, controllerFlags, schedulerFlags extraFlags
}

func main() {
	var cp controlPlane
	// An own flag set: imported packages register flags of theirs in the default one.
	flags := flag.NewFlagSet("controlplane", flag.ExitOnError)
	flags.StringVar(&cp.dir, "dir", "", "state directory (required; use a fresh one per run)")
	flags.StringVar(&cp.kubeconfig, "kubeconfig", "", "admin kubeconfig to write when ready (default DIR/kubeconfig)")
	flags.Var(&cp.apiServerFlags, "apiserver", "extra kube-apiserver flag, repeatable")
	flags.Var(&cp.controllerFlags, "controller-manager", "extra kube-controller-manager flag, repeatable")
	flags.Var(&cp.schedulerFlags, "scheduler", "extra kube-scheduler flag, repeatable")
	flags.Parse(os.Args[1:])
	if cp.dir == "" {
		log.Fatal("--dir is required")
	}
	var err error
	if cp.dir, err = filepath.Abs(cp.dir); err != nil { // a kubeconfig's paths are relative to it
		log.Fatal(err)
	}
	if cp.kubeconfig == "" {
		cp.kubeconfig = cp.path("kubeconfig")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := cp.run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run starts every component and returns on a signal or when one of them ends.
func (cp *controlPlane) run(ctx context.Context) error {
	began := time.Now()
	if err := cp.prepare(); err != nil {
		return err
	}
	etcdURL, err := startEtcd(cp.path("etcd"))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	ended := make(chan error, 3)
	start := func(name string, component func() error) {
		go func() { ended <- fmt.Errorf("%s ended: %w", name, component()) }()
	}
	start("kube-apiserver", func() error { return cp.runAPIServer(ctx, etcdURL) })

	ready := make(chan error, 1)
	go func() { ready <- cp.awaitAPIServer(ctx) }()
	for {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		case err := <-ready:
			if err != nil {
				return err
			}
			ready = nil // a nil channel never fires again
			start("kube-controller-manager", func() error { return cp.runControllerManager(ctx) })
			start("kube-scheduler", func() error { return cp.runScheduler(ctx) })
			go func() {
				if err := cp.publish(ctx); err != nil {
					ended <- err
					return
				}
				log.Printf("ready after %.1fs: %s", time.Since(began).Seconds(), cp.kubeconfig)
			}()
		}
	}
}

func (cp *controlPlane) path(name string) string { return filepath.Join(cp.dir, name) }
func (cp *controlPlane) server() string          { return fmt.Sprintf("https://127.0.0.1:%d", cp.port()) }
func (cp *controlPlane) port() int               { return cp.listener.Addr().(*net.TCPAddr).Port }

// prepare takes a free port and writes the service account key, the token file
// and the kubeconfig that the components themselves use.
func (cp *controlPlane) prepare() error {
	if err := os.MkdirAll(cp.dir, 0o700); err != nil {
		return err
	}
	var err error
	if cp.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	der := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(cp.path("sa.key"), der, 0o600); err != nil {
		return err
	}
	secret := make([]byte, 16)
	rand.Read(secret)
	cp.token = hex.EncodeToString(secret)
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n", cp.token)
	if err := os.WriteFile(cp.path("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return err
	}
	return cp.writeKubeconfig(cp.path("internal.kubeconfig"))
}

func (cp *controlPlane) writeKubeconfig(path string) error {
	const name = "controlplane"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: cp.server(), CertificateAuthority: cp.caFile()}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: cp.token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}

// caFile is the bundle (leaf and its CA) that the API server signs for itself.
func (cp *controlPlane) caFile() string { return cp.path("certs/apiserver.crt") }

// awaitAPIServer returns once /readyz answers ok.
func (cp *controlPlane) awaitAPIServer(ctx context.Context) error {
	return cp.poll(ctx, func(ctx context.Context, client kubernetes.Interface) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// publish writes the admin kubeconfig once pods can be created.
func (cp *controlPlane) publish(ctx context.Context) error {
	if err := cp.poll(ctx, func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	partial := cp.kubeconfig + ".partial"
	if err := cp.writeKubeconfig(partial); err != nil {
		return err
	}
	return os.Rename(partial, cp.kubeconfig)
}

// poll repeats check until it passes; the CA file appears while it waits. A request made while the server starts can
// stay without an answer, so each attempt has its own deadline and, by HTTP/1.1, its own connection to give up.
func (cp *controlPlane) poll(ctx context.Context, check func(context.Context, kubernetes.Interface) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := cp.attempt(ctx, check)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (cp *controlPlane) attempt(ctx context.Context, check func(context.Context, kubernetes.Interface) error) error {
	config, err := clientcmd.BuildConfigFromFlags("", cp.path("internal.kubeconfig"))
	if err != nil {
		return err
	}
	config.TLSClientConfig.NextProtos = []string{"http/1.1"}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "controlplane"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return check(ctx, client)
}
