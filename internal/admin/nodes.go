package admin

import (
	"github.com/spf13/cobra"

	"karui/internal/api"
	"karui/internal/command"
	"karui/internal/server"
)

// Nodes are how a command is told which nodes of a cluster to ask, where it asks all
// of them.
type Nodes struct {
	admins     []string
	tokenFiles []string
}

// Register adds --admin and --token-file to a command, both of which may be repeated.
func (n *Nodes) Register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&n.admins, "admin", nil,
		"admin listener to ask, such as http://127.0.0.1:9090; once for each node (default: that of the configuration)")
	cmd.Flags().StringArrayVar(&n.tokenFiles, "token-file", nil,
		"file that holds the token for --admin, one for all or one for each in their order (default: the first token of the configuration with the right)")
}

// Clients finds the listeners in the order in which they were named, see Flags.Client.
func (n *Nodes) Clients(load func() (server.Config, error), right api.Right, sites ...string) ([]*Client, error) {
	if files, admins := len(n.tokenFiles), max(len(n.admins), 1); files > 1 && files != admins {
		return nil, command.Usage("--token-file is given %d times for %d admin listeners: give it once, or once for each", files, admins)
	}
	named := n.admins
	if len(named) == 0 {
		named = []string{""}
	}
	var clients []*Client
	for i, address := range named {
		f := Flags{admin: address}
		switch len(n.tokenFiles) {
		case 0:
		case 1:
			f.tokenFile = n.tokenFiles[0]
		default:
			f.tokenFile = n.tokenFiles[i]
		}
		c, err := f.Client(load, right, sites...)
		if err == nil && len(n.admins) > 0 && address == "" {
			err = command.Usage("--admin is empty: name a listener, or leave it out")
		}
		for _, other := range clients {
			if err == nil && other.base == c.base {
				err = command.Usage("--admin names %s twice", c.base)
			}
		}
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}
