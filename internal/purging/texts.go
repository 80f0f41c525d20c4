package purging

// texts gives the page's words in a language, en or ja. What the API says of errors
// stays in English.
func texts(tongue string) map[string]string {
	if tongue == "ja" {
		return map[string]string{
			"title": "パージ", "skip": "本文へ", "leave": "トークンを消去",
			"noscript":  "このページには JavaScript が必要です。コマンド karui purge なら不要です。",
			"enter":     "トークン",
			"enterNote": "サイトの担当者用トークンを入力してください。このタブを閉じるまでの間だけ保持されます。",
			"token":     "トークン", "go": "進む", "signed": "トークンを使用中",
			"ask": "画像のキャッシュを消す", "site": "サイト", "prefixes": "パスまたは URL（1 行に 1 つ）",
			"prefixesNote": "そのパスで始まるすべての画像が対象です。URL を貼り付けてもかまいません。/ だけならサイト全体です。",
			"edge":         "CloudFront からも消す", "exact": "ファイル名を完全に指定した",
			"exactNote": "多数のファイルを一度に消せますが、? 以降の付いた URL のコピーは CloudFront に残ります。",
			"noEdge":    "このサイトには CloudFront の設定がないため、karui だけから消します。",
			"purge":     "パージする", "purges": "パージの状況", "none": "まだありません。",
			"footer": "karui から消えたことを確認した後で、CloudFront から消します。CloudFront には数秒から数分かかります。",
			"yes":    "すべて消す", "no": "やめる",
			"running": "処理中", "done": "完了", "failed": "失敗",
			"about_none":    "karui から消しました。",
			"about_skipped": "karui から消しました。CloudFront は対象外です。",
			"about_done":    "karui と CloudFront（{edge}）から消しました。",
			"about_failed":  "karui からは消しましたが、CloudFront からは消せませんでした。",
			"about_running": "karui から消しました。CloudFront（{edge}）で処理中です: {completed} / {paths}",
			"waits":         "待機中:", "remedy": "対処:", "more": "ほか {n} 件",
			"empty":        "パスを 1 つ以上入力してください。",
			"sure":         "サイト {site} の画像をすべて消します。以後はすべて取得し直し、変換し直すため、しばらく負荷が高くなります。",
			"acknowledged": "karui から消しました。",
			"away":         "karui から応答がありません。",
		}
	}
	return map[string]string{
		"title": "purge", "skip": "Skip to the form", "leave": "forget the token",
		"noscript":  "This page needs JavaScript. The command karui purge does not.",
		"enter":     "Your token",
		"enterNote": "The token that you were given for your site. It is kept for this tab alone, until you close it.",
		"token":     "Token", "go": "Continue", "signed": "with a token",
		"ask": "Purge pictures", "site": "Site", "prefixes": "Paths or URLs, one a line",
		"prefixesNote": "Everything whose path begins so is purged. Whole URLs may be pasted. A single / is all of the site.",
		"edge":         "At CloudFront as well", "exact": "These are whole file names",
		"exactNote": "Many files at once then go fast, but copies with a ? in their URL stay at CloudFront.",
		"noEdge":    "No CloudFront is configured for this site: karui alone is purged.",
		"purge":     "Purge", "purges": "Purges", "none": "None yet.",
		"footer": "CloudFront is told once karui has forgotten. It takes seconds to minutes.",
		"yes":    "Purge everything", "no": "Cancel",
		"running": "under way", "done": "done", "failed": "failed",
		"about_none":    "Purged at karui.",
		"about_skipped": "Purged at karui; CloudFront was left out.",
		"about_done":    "Purged at karui and at CloudFront ({edge}).",
		"about_failed":  "Purged at karui, but not at CloudFront.",
		"about_running": "Purged at karui; CloudFront ({edge}) has completed {completed} of {paths}.",
		"waits":         "It waits:", "remedy": "What to do:", "more": "and {n} more",
		"empty":        "Give at least one path.",
		"sure":         "This purges every picture of site {site}. All of them are fetched and converted anew, which is much work for a while.",
		"acknowledged": "Purged at karui.",
		"away":         "karui gives no answer.",
	}
}
