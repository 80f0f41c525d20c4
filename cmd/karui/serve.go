package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/config"
	"karui/internal/sample"
	"karui/internal/server"
)

// serving is the command line of `karui serve`.
type serving struct {
	file   configFlag
	origin string
	listen string
	sample bool
}

func newServeCommand() *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Runs the proxy",
		Long: `Runs the proxy until SIGTERM or SIGINT, and then drains: answers under way are
finished, and new requests are sent to the true origin by a 503. A second signal
ends at once. SIGHUP reads the configuration again.`,
		Example: `  karui serve --config /etc/karui/karui.yaml
  karui serve --origin https://www.example.com
  karui serve --sample --listen 127.0.0.1:8080`,
		Args: cobra.NoArgs,
		RunE: s.run,
	}
	s.file.register(cmd)
	cmd.Flags().StringVar(&s.origin, "origin", "", "serve one site, whose originals are at this URL; no file is needed")
	cmd.Flags().StringVar(&s.listen, "listen", "", "public address, instead of the configured one")
	cmd.Flags().BoolVar(&s.sample, "sample", false, "serve drawn images from an origin inside this process, to try karui out")
	return cmd
}

func (s *serving) run(cmd *cobra.Command, _ []string) error {
	if s.sample && s.origin != "" {
		return command.Usage("--sample is an origin of its own: leave --origin out")
	}
	ctx := cmd.Context()
	if s.sample {
		url, stop, err := startSample()
		if err != nil {
			return err
		}
		defer stop()
		s.origin = url
	}
	flags, err := s.flags(cmd)
	if err != nil {
		return err
	}
	loaded, err := s.file.load(cmd, flags...)
	if err != nil {
		return err
	}
	for _, w := range loaded.Warnings {
		command.Warn(cmd, "%s", w)
	}
	// net/http's client takes no logger: what it says of an origin that sends too much goes to the standard one.
	slog.SetDefault(slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil)))
	// Libraries that log on their own, as net/http does about strange bytes of an
	// origin, must not break the lines of JSON.
	slog.SetLogLoggerLevel(slog.LevelDebug)
	slog.SetDefault(slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil)))

	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	var hello sync.WaitGroup
	defer hello.Wait()
	ending, ended := context.WithCancel(ctx) // also where the proxy ends by itself
	defer ended()
	started := make(chan string, 1)
	hello.Go(func() {
		if os.Getenv("NOTIFY_SOCKET") == "" {
			return // nobody wants to know
		}
		tellReady(ending, started, readyPatience, func() {
			if err := command.Ready(ending); err != nil {
				slog.Warn("systemd does not learn that karui is ready", "error", err)
			}
		})
	})
	return server.Run(ctx, server.Options{
		Config: loaded.Value,
		Reload: func() (server.Config, error) {
			again, err := s.file.load(cmd, flags...)
			if err != nil {
				return server.Config{}, err
			}
			return again.Value, nil
		},
		Hangup:  hangup,
		Log:     cmd.ErrOrStderr(),
		Version: version,
		Started: func(public, admin net.Addr) {
			started <- reachable(admin)
			if s.sample {
				hello.Go(func() { greet(ctx, cmd.OutOrStdout(), s.origin, reachable(public), greeting) })
			}
		},
	})
}

// readyPatience is how long whoever starts karui waits for it at most: it is below what
// systemd allows a start (90 s), since karui answers with originals before its first
// conversion works, and must not be ended for being slow.
const readyPatience = 30 * time.Second

// tellReady calls tell once, when the admin listener whose address comes by started
// says that karui is ready, or after patience. It does not once ctx has ended.
func tellReady(ctx context.Context, started <-chan string, patience time.Duration, tell func()) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case address := <-started:
		_ = untilReady(limited, func(ctx context.Context) error { return ready(ctx, "http://"+address+"/readyz", nil) })
	case <-limited.Done():
	}
	if ctx.Err() == nil {
		tell()
	}
}

// flags gives the settings that the command line makes.
func (s *serving) flags(cmd *cobra.Command) ([]config.Flag, error) {
	var flags []config.Flag
	if s.listen != "" {
		flags = append(flags, config.Flag{Name: "--listen", Key: "listen", Value: s.listen})
	}
	if s.origin == "" {
		return flags, nil
	}
	flags = append(flags, server.OriginFlag(s.origin))
	loaded, err := s.file.load(cmd, flags...)
	if err != nil {
		return nil, err
	}
	if loaded.Source("cache.volumes").Kind != config.SourceDefault {
		return flags, nil
	}
	name := s.origin
	if s.sample {
		name = "sample" // its port is another one every time
	}
	volume, words, err := server.VolumeFlag(loaded.Value.Cache.Volumes[0].Path, name)
	if err != nil {
		return nil, err
	}
	if words != "" {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "karui: %s\n", words)
	}
	return append(flags, volume), nil
}

// startSample serves the sample images on a free port of this machine.
func startSample() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("start the sample origin: %w", err)
	}
	origin := &http.Server{Handler: sample.New(), ReadHeaderTimeout: 10 * time.Second}
	var running sync.WaitGroup
	running.Go(func() {
		if err := origin.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			_, _ = fmt.Fprintf(os.Stderr, "karui: the sample origin ended: %v\n", err)
		}
	})
	return "http://" + l.Addr().String(), func() {
		_ = origin.Close() // nobody is left to ask it
		running.Wait()
	}, nil
}

// reachable gives an address that a client on this machine can use.
func reachable(public net.Addr) string {
	host, port, err := net.SplitHostPort(public.String())
	if err != nil {
		return public.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// greeting is how long greet waits for the first variant, which takes a second
// where conversion works.
const greeting = 30 * time.Second

// greet says how to try karui, once there is something to see, or when there
// should have been within wait.
func greet(ctx context.Context, out io.Writer, origin, address string, wait time.Duration) {
	photo := "http://" + address + sample.PhotoPath
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	seen := isWebP(limited, photo)
	for !seen && limited.Err() == nil {
		select {
		case <-time.After(200 * time.Millisecond):
			seen = isWebP(limited, photo)
		case <-limited.Done():
		}
	}
	if ctx.Err() != nil {
		return
	}
	if !seen {
		_, _ = fmt.Fprintf(out, "karui has made no WebP of the sample photo within %s, so you get the originals: the log says why\n\n", wait)
	}
	_, _ = fmt.Fprintf(out, `karui serves http://%s in front of the sample origin %s

A browser that takes WebP gets WebP, all others get the original:

  curl -sD- -o photo.webp -H 'Accept: image/webp' %s
  curl -sD- -o photo.jpg %s

`, address, origin, photo, photo)
}

// isWebP asks once, and tells whether WebP came.
func isWebP(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "image/webp")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.Header.Get("Content-Type") == "image/webp"
}
