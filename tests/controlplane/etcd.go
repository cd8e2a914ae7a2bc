package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// etcd preallocates two write-ahead segments; its default is 64 MB each.
	walSegmentBytes = 8 << 20
	// etcd listens for itself, so a free port may be taken between asking for it and using it.
	portAttempts = 10
)

// startEtcd returns the client URL of a single etcd member on loopback.
func startEtcd(dir string) (string, error) {
	wal.SegmentSizeBytes = walSegmentBytes
	var err error
	for range portAttempts {
		var clientURL string
		if clientURL, err = tryEtcd(dir); !errors.Is(err, syscall.EADDRINUSE) {
			return clientURL, err
		}
	}
	return "", err
}

func tryEtcd(dir string) (string, error) {
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.UnsafeNoFsync = true // throw-away state
	var listeners []url.URL
	for range 2 {
		port, err := freePort()
		if err != nil {
			return "", err
		}
		listeners = append(listeners, url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = listeners[:1], listeners[:1]
	config.ListenPeerUrls, config.AdvertisePeerUrls = listeners[1:], listeners[1:]
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return "", err
	}
	<-server.Server.ReadyNotify()
	return listeners[0].String(), nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
