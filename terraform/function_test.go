package terraform_test

import (
	"os"
	"testing"

	"karui/deploy"
)

// The module has to be whole by itself, so it holds a copy of the function.
func TestFunctionIsTheTestedOne(t *testing.T) {
	const path = "modules/distribution/normalise-accept.js"
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != deploy.NormaliseAccept {
		t.Errorf("%s differs from the function that is tested: cp deploy/cloudfront/normalise-accept.js terraform/%s", path, path)
	}
}
