package demo

import (
	"fmt"
	"net/smtp"
	"strings"
	"testing"
	"time"
)

const japaneseMail = "From: karui-watchdog@demo.example\r\nTo: operators@demo.example\r\n" +
	"Subject: [karui] shop DEGRADED =?UTF-8?B?44OX44Ot44Kt44K344GM5YGc5q2i?=\r\n" +
	"Content-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: base64\r\nContent-Language: ja\r\nX-Karui-Kind: degrade\r\n\r\n" +
	"44OX44Ot44Kt44K3DQrjgYzlgZzmraINCg==\r\n"

func mailText(subject, body string) []byte {
	return []byte("From: a@demo.example\r\nTo: b@demo.example\r\nSubject: " + subject + "\r\nContent-Type: text/plain; charset=UTF-8\r\n" +
		"Content-Transfer-Encoding: quoted-printable\r\nX-Karui-Kind: restore\r\n\r\n" + body)
}

func TestInboxTakesMails(t *testing.T) {
	arrived := make(chan letter, 10)
	b, err := openInbox(time.Now, func(m letter) { arrived <- m })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	send := func(raw []byte) error {
		return smtp.SendMail(b.Address, nil, "a@demo.example", []string{"b@demo.example"}, raw)
	}
	if err := send(mailText("one", "1 =3D 1\r\n.\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := send([]byte(japaneseMail)); err != nil {
		t.Fatal(err)
	}
	first, second := <-arrived, <-arrived
	if first.Number != 1 || first.Subject != "one" || first.Text != "1 = 1\n.\n" || first.Kind != "restore" {
		t.Errorf("%+v", first)
	}
	if second.Subject != "[karui] shop DEGRADED プロキシが停止" || second.Text != "プロキシ\nが停止\n" || second.Lang != "ja" {
		t.Errorf("%+v", second)
	}
	if err := send([]byte("Subject: x\r\nContent-Type: text/html\r\n\r\n<p>")); err == nil {
		t.Error("a page was taken for a mail of text")
	}
	if err := send(mailText("large", strings.Repeat(strings.Repeat("x", 70)+"\r\n", mailBytes/64))); err == nil {
		t.Error("a mail over the limit was taken")
	}
	for i := range maxMails {
		if err := b.take(mailText(fmt.Sprint(i), "x")); err != nil {
			t.Fatal(err)
		}
		<-arrived
	}
	if all, count := b.all(); len(all) != maxMails || count != maxMails+2 || all[0].Subject != fmt.Sprint(maxMails-1) {
		t.Errorf("%d of %d mails, newest %q", len(all), count, all[0].Subject)
	}
}

func FuzzParseLetter(f *testing.F) {
	f.Add(mailText("one", "text"))
	f.Add([]byte(japaneseMail))
	f.Add([]byte("\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := parseLetter(raw)
		if err == nil && len(m.Text) > 2*mailBytes {
			t.Errorf("text of %d bytes", len(m.Text))
		}
	})
}
