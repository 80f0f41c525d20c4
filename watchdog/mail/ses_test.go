package mail

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	double "karui/internal/cloudfront"
	"karui/watchdog/event"
)

// inSES runs f with a Mailer that sends through the double's SES.
func inSES(t *testing.T, policy string, f func(b *bench, aws *double.Double)) {
	inBubble(t, func(b *bench) {
		d := double.New(double.Options{})
		user, err := d.AddUser("watchdog", policy)
		if err != nil {
			t.Fatal(err)
		}
		pipe := double.NewPipe()
		server := d.Serve(pipe)
		transport := pipe.Transport()
		b.config.Mail.SMTP.Host, b.config.Mail.SES.Region = "", "ap-northeast-1"
		b.Mailer = b.mailer()
		b.opt.AWS = aws.Config{
			Region: "us-east-1", BaseEndpoint: aws.String(server.URL), HTTPClient: &http.Client{Transport: transport, Timeout: 30 * time.Second},
			Credentials: credentials.NewStaticCredentialsProvider(user.AccessKeyID, user.SecretAccessKey, ""),
		}
		f(b, d)
		transport.CloseIdleConnections()
		if err := server.Close(b.t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSESTakesTheMailAsItIs(t *testing.T) {
	inSES(t, double.AllowAll, func(b *bench, d *double.Double) {
		restore := told("r", event.Restore)
		restore.ReplyTo = "d"
		b.enqueue(b.Mailer, told("d", event.Degrade), restore, about("mise", told("j", event.Degrade)))
		if err := b.Flush(b.t.Context()); err != nil {
			t.Fatal(err)
		}
		in := d.Messages()
		if len(in) != 3 {
			t.Fatalf("%d mails", len(in))
		}
		if in[0].From != "karui@example.com" || !slices.Equal(in[0].To, []string{"ops@example.com", "boss@example.com"}) {
			t.Errorf("%+v", in[0])
		}
		degrade, reply, japanese := open(t, in[0].Raw), open(t, in[1].Raw), open(t, in[2].Raw)
		if degrade.header.Get("Auto-Submitted") != "auto-generated" || !strings.HasPrefix(degrade.subject, "[karui] shop DEGRADED ") {
			t.Errorf("%+v", degrade)
		}
		// SES writes its own Message-ID, to which a reply has to refer.
		first := "<" + in[0].ID + "@ap-northeast-1.amazonses.com>"
		if reply.header.Get("In-Reply-To") != first || reply.header.Get("References") != first+" <karui.d@example.com>" {
			t.Errorf("%q", reply.header)
		}
		if !strings.HasPrefix(japanese.subject, "[karui] mise DEGRADED プロキシ") || !strings.Contains(japanese.body, "必要な対応") {
			t.Errorf("%q\n%s", japanese.subject, japanese.body)
		}
		b.waiting(b.Mailer, 0)
	})
}

func TestSESSandbox(t *testing.T) {
	inSES(t, double.AllowAll, func(b *bench, d *double.Double) {
		d.SetVerified("karui@example.com", "ops@example.com")
		err := b.Try(b.t.Context(), sample(event.Rehearsal))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Recipient != "boss@example.com" || !e.Permanent || e.Code != "MessageRejected" || !strings.Contains(e.Hint, "verified") {
			t.Errorf("%v", err)
		}
		if in := d.Messages(); len(in) != 1 || !slices.Equal(in[0].To, []string{"ops@example.com"}) {
			t.Errorf("%+v", in)
		}
		b.enqueue(b.Mailer, told("d", event.Degrade))
		b.off(25 * time.Hour)
		defer b.run(b.Mailer)()
		synctest.Wait()
		if n := len(d.Messages()); n != 2 || b.files(placeSent) != 1 || b.logs.count("does not get a mail") != 1 {
			t.Errorf("%d mails: %s", n, b.logs)
		}
	})
}

func TestSESInTrouble(t *testing.T) {
	const deny = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:*","Resource":"*"}]}`
	for _, tt := range []struct {
		name, policy string
		trouble      func(d *double.Double)
		stage, code  string
		permanent    bool
		hint         string
	}{
		{"no right", deny, nil, StageAuth, "AccessDeniedException", true, "ses:SendEmail"},
		{"throttled", double.AllowAll, func(d *double.Double) { d.Fail("SendEmail", 1, 429, "TooManyRequestsException", "Too many") }, StageSession, "TooManyRequestsException", false, "quota"},
		{"paused", double.AllowAll, func(d *double.Double) { d.Fail("SendEmail", 1, 400, "SendingPausedException", "paused") }, StageAuth, "SendingPausedException", false, "AWS support"},
		{"sender not verified", double.AllowAll, func(d *double.Double) { d.Fail("SendEmail", 1, 400, "MailFromDomainNotVerifiedException", "no") }, StageSender, "MailFromDomainNotVerifiedException", true, "verify"},
		{"broken", double.AllowAll, func(d *double.Double) { d.Fail("SendEmail", 1, 500, "InternalFailure", "oh") }, StageSession, "InternalFailure", false, ""},
		{"dropped", double.AllowAll, func(d *double.Double) { d.Drop("SendEmail", double.DropBefore, 1) }, StageConnect, "", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inSES(t, tt.policy, func(b *bench, d *double.Double) {
				if tt.trouble != nil {
					tt.trouble(d)
				}
				e, ok := errors.AsType[*Error](b.Try(b.t.Context(), sample(event.Rehearsal)))
				if !ok || e.Stage != tt.stage || e.Code != tt.code || e.Permanent != tt.permanent || !strings.Contains(e.Hint, tt.hint) {
					t.Errorf("%+v", e)
				}
				if tt.policy == deny {
					return
				}
				d.Calm()
				if tt.trouble != nil {
					tt.trouble(d)
				}
				defer b.run(b.Mailer)()
				b.enqueue(b.Mailer, told("d", event.Degrade))
				time.Sleep(firstRetry + time.Second)
				synctest.Wait()
				if n := len(d.Messages()); n != 1 {
					t.Errorf("%d mails", n)
				}
			})
		})
	}
}

// The one window in which a mail goes out twice: the answer is lost.
func TestALostAnswerOfSES(t *testing.T) {
	inSES(t, double.AllowAll, func(b *bench, d *double.Double) {
		d.Drop("SendEmail", double.DropAfter, 1)
		defer b.run(b.Mailer)()
		b.enqueue(b.Mailer, told("d", event.Degrade))
		time.Sleep(time.Hour)
		synctest.Wait()
		in := d.Messages()
		if len(in) != 2 {
			t.Fatalf("%d mails", len(in))
		}
		for _, m := range in {
			if o := open(t, m.Raw); o.header.Get("X-Karui-Event") != "d" || o.header.Get("Message-Id") != "<karui.d@example.com>" {
				t.Errorf("%v", o.header)
			}
		}
	})
}
