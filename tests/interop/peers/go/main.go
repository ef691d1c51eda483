// Command peer is the fixture on the Go SDK: `peer server TRANSPORT REVISION`, `peer client PLAN`.
package main

import (
	"fmt"
	"os"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == "server":
		err = serve(os.Args[2], os.Args[3])
	case len(os.Args) >= 3 && os.Args[1] == "client":
		err = check(os.Args[2])
	default:
		err = fmt.Errorf("usage: peer server TRANSPORT REVISION, peer client PLAN")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
