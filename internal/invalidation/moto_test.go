package invalidation

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront/types"
)

// TestAgainstMoto asks an API that others made.
func TestAgainstMoto(t *testing.T) {
	path, err := exec.LookPath("moto_server")
	if err != nil {
		t.Skip("moto_server is not installed: no second opinion on invalidations (pip install 'moto[server]')")
	}
	url := startMoto(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	base := aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: &http.Client{Transport: transport, Timeout: attemptTimeout},
		Credentials: credentials.NewStaticCredentialsProvider("AKIAIOSFODNN7EXAMPLE", "secret", ""),
	}
	// It tells accounts apart by the session, so the role makes the distribution.
	maker := New(base, shop())
	defer maker.Close()
	made, err := maker.cloudfront.CreateDistribution(ctx, &cloudfront.CreateDistributionInput{DistributionConfig: &types.DistributionConfig{
		CallerReference: aws.String("karui"), Comment: aws.String(""), Enabled: aws.Bool(true),
		DefaultCacheBehavior: &types.DefaultCacheBehavior{TargetOriginId: aws.String("origin"), ViewerProtocolPolicy: types.ViewerProtocolPolicyAllowAll},
		Origins: &types.Origins{Quantity: aws.Int32(1), Items: []types.Origin{{
			Id: aws.String("origin"), DomainName: aws.String("origin.example.com"),
			CustomOriginConfig: &types.CustomOriginConfig{HTTPPort: aws.Int32(80), HTTPSPort: aws.Int32(443), OriginProtocolPolicy: types.OriginProtocolPolicyHttpOnly},
		}}},
	}})
	if err != nil {
		t.Skipf("moto makes no distribution: %v", err)
	}
	target := shop()
	target.Distribution = *made.Distribution.Id
	c := New(base, target)
	defer c.Close()
	v, err := c.Create(ctx, "karui-x-1", []string{"/images/*", "/caf%C3%A9*", "/a.jpg?v=1"})
	if err != nil || v.ID == "" {
		t.Fatalf("%+v, %v", v, err)
	}
	for !v.Completed {
		if v, err = c.Get(ctx, v.ID); err != nil {
			t.Fatal(err)
		}
	}
	target.Distribution = "E404"
	other := New(base, target)
	defer other.Close()
	_, err = other.Create(ctx, "karui-x-2", []string{"/*"})
	wantKind(t, err, KindNotFound)
}

// startMoto runs moto_server on a free port until the test ends.
func startMoto(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command(path, "-H", "127.0.0.1", "-p", "0")
	cmd.Dir = t.TempDir()
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "AWS_") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it may be a wrapper script
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Skipf("moto_server does not start: %v", err)
	}
	url := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		running := regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := running.FindString(lines.Text()); m != "" {
				select {
				case url <- m:
				default: // said before
				}
			}
		}
		_, _ = io.Copy(io.Discard, out) // a line too long for the scanner
	}()
	t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Errorf("end moto_server: %v", err)
		}
		_ = cmd.Wait() // killed
		_ = in.Close()
		<-read
		_ = out.Close()
	})
	select {
	case u := <-url:
		return u
	case <-read:
		t.Skip("moto_server ended at once: no second opinion on invalidations")
	case <-time.After(time.Minute):
		t.Skip("moto_server did not come up within a minute: no second opinion on invalidations")
	}
	return ""
}
