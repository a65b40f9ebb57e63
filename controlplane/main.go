// The local control plane as one binary: it runs as the program that argv[0] names.
//
// etcd, kube-apiserver and kube-controller-manager share most of their packages, so one link step and one file
// on disk serve all three; the installer puts three links beside it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	switch program := filepath.Base(os.Args[0]); program {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "%s: run me as etcd, kube-apiserver or kube-controller-manager (a link by that name)\n", program)
		os.Exit(2)
	}
}
