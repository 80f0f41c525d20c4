package server

import (
	"karui/internal/api"
	"karui/internal/status"
)

// api makes the operators' API from the server's own routes and those of others.
func (s *server) api() *api.Handler {
	routes := append(s.routes(), status.Routes(s.recorder)...)
	routes = append(routes, s.purging.Routes()...)
	if s.options.Routes != nil {
		routes = append(routes, s.options.Routes(Parts{
			Cache: s.cache, Pool: s.pool, Proxy: s.proxy, Backlog: s.backlog, Config: s.inForce, Origin: s.clients.find, Log: s.log,
		})...)
	}
	return api.New(api.Options{Routes: routes, Tokens: s.config.Admin.keys(), Log: s.log, Changed: s.noteOperator})
}

// inForce gives the configuration, which a reload changes.
func (s *server) inForce() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}
