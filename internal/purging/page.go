package purging

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"golang.org/x/text/language"

	"karui/internal/page"
)

// Path is where the page is.
const Path = "/purge"

//go:embed assets
var assets embed.FS

// Page is a page for people who purge now and then. It holds nothing by itself: its
// script asks the API, with the token that the person gives, and so may do what any
// other client with that token may.
func Page(log *slog.Logger) (http.Handler, error) {
	set, err := page.New(Path, assets, "assets/*.html")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	set.Assets(mux)
	own := map[string]string{}
	for name, kind := range map[string]string{"purge.css": "text/css; charset=utf-8", "purge.js": "text/javascript; charset=utf-8"} {
		body, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, fmt.Errorf("read the page: %w", err)
		}
		sum := sha256.Sum256(body)
		own[name] = Path + "/" + name + "?v=" + hex.EncodeToString(sum[:6])
		mux.HandleFunc("GET "+Path+"/"+name, func(w http.ResponseWriter, _ *http.Request) {
			page.Secure(w.Header())
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(body) // a browser that left needs no script
		})
	}
	views := map[string]view{}
	for _, tongue := range []string{"en", "ja"} {
		v := view{Language: tongue, Style: own["purge.css"], Script: own["purge.js"]}
		if v.T, v.Words, err = texts(tongue); err != nil {
			return nil, err
		}
		views[tongue] = v
	}
	tongues := language.NewMatcher([]language.Tag{language.English, language.Japanese})
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		_, i := language.MatchStrings(tongues, r.Header.Get("Accept-Language"))
		w.Header().Set("Vary", "Accept-Language")
		if err := set.Whole(w, http.StatusOK, "purge.html", views[[]string{"en", "ja"}[i]]); err != nil {
			log.Error("the page of purges failed", "error", err)
		}
	})
	return mux, nil
}

// view is what the template shows.
type view struct {
	Language      string
	T             map[string]string
	Words         string // T for the script
	Style, Script string
}

// texts gives the page's words in a language, en or ja, also as JSON for the script.
// What the API says of errors stays in English.
func texts(tongue string) (words map[string]string, script string, err error) {
	b, err := assets.ReadFile("assets/" + tongue + ".json")
	if err == nil {
		err = json.Unmarshal(b, &words)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the page's words: %w", err)
	}
	return words, string(b), nil
}
