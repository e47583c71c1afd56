package report

import (
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

// saidBy are the texts that a form has to show of a block, in their order.
func saidBy(b *block, m media) []string {
	var out []string
	add := func(texts ...string) { out = append(out, nonEmpty(texts...)...) }
	add(b.Heading, b.Text)
	add(b.Legend...)
	for _, x := range b.Said {
		add(x.Word, x.Text)
	}
	if b.Lead != nil && m != inText {
		add(strings.TrimSuffix(b.Lead.Word, "none"))
	}
	if b.Notice != nil {
		add(b.Notice.Text)
	}
	if b.Head != nil {
		add(b.Head.Text)
		add(b.Head.Parts...)
	}
	if b.List != nil {
		add(b.List.Items...)
	}
	if b.Figure != nil && b.Figure.Line != nil {
		add(b.Figure.Line.Text)
	}
	if t, _ := b.Table.shown(m); t != nil {
		for _, c := range t {
			add(c.head)
		}
		add(t[0].cells...)
		add(t.notes()...)
	}
	return out
}

// plainly is a form's output as the document has its texts: without markup, and with single spaces.
func plainly(m media, s string) string {
	if m == inMarkdown {
		s = html.UnescapeString(strings.NewReplacer("\\", "", "**", "").Replace(s))
	}
	if m == onPage {
		s = svgs.ReplaceAllString(scripts.ReplaceAllString(s, ""), "")
		s = html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(s, " "))
	}
	return strings.ToLower(strings.Join(strings.Fields(s), " "))
}

// TestFormsOnlyRenderTheDocument: every form shows all blocks that are for it, in the order of the document, and no
// sentence that is for other forms only. The text form ends with the closing blocks and the verdict.
func TestFormsOnlyRenderTheDocument(t *testing.T) {
	hosttest.SkipIfShort(t)
	all := samples()
	maps.Copy(all, pageSamples())
	checked := 0
	for name, r := range all {
		if strings.Contains(name, "hostile") {
			continue // whose texts no form may show as they are
		}
		for form, m := range map[string]media{"text": inText, "markdown": inMarkdown, "html": onPage} {
			encoder := map[media]Encoder{inText: Style{Width: 100000}.Text, inMarkdown: Markdown, onPage: HTML}[m]
			out := plainly(m, string(encode(t, encoder, r)))
			at := 0
			for _, s := range compose(r, nil) {
				for _, b := range s.Blocks {
					if !b.in(m) {
						if said := plainly(inText, b.Text); said != "" && strings.Contains(out, said) {
							t.Errorf("%s: the %s form says what is for others: %q", name, form, b.Text)
						}
						continue
					}
					for _, text := range saidBy(&b, m) {
						from := at
						if m == inText || m == onPage && b.Notice != nil { // closing blocks and notices stand elsewhere
							from = 0
						}
						i := strings.Index(out[from:], plainly(inText, sanitize(text)))
						if i < 0 {
							t.Fatalf("%s: the %s form does not say %q, or not behind %q", name, form, text, out[max(0, at-60):at])
						}
						at = max(at, from+i)
						checked++
					}
				}
			}
			if said := plainly(inText, "verdict "+r.Verdict.mark()+because(r.Reason)); m == inText &&
				!strings.HasSuffix(out, said) {
				t.Errorf("%s: the text form does not end with the verdict", name)
			}
		}
	}
	if checked < 3000 {
		t.Errorf("only %d texts were looked for", checked)
	}
}

// TestInvalidityIsExplainedOnce: the reason of an invalid run stands where its verdict is, and nowhere else.
func TestInvalidityIsExplainedOnce(t *testing.T) {
	late := caches()
	const why = "the generator sent late in 12 of 20 blocks: p99 2.7 ms, where 1 ms is allowed"
	late.Verdict, late.Reason = Invalid, why
	late.Generator = &Generator{Reason: why, Doubts: []string{why}, AchievedRatio: new(1.0)}
	checked := 0
	for name, r := range map[string]*Report{"search": invalidRun(), "late": late, "differs": unreliable()} {
		_, reason, _ := strings.Cut(r.Reason, ": ")
		for form, m := range map[string]media{"text": inText, "markdown": inMarkdown, "html": onPage} {
			encoder := map[media]Encoder{inText: Style{Width: 100000}.Text, inMarkdown: Markdown, onPage: HTML}[m]
			out := plainly(m, string(encode(t, encoder, r)))
			if n := strings.Count(out, plainly(inText, reason)); n != 1 {
				t.Errorf("%s: the %s form gives the reason %d times", name, form, n)
			}
			checked++
		}
	}
	if checked != 9 {
		t.Errorf("%d forms were read", checked)
	}
}

// TestOneWording: what the forms once said differently.
func TestOneWording(t *testing.T) {
	r := enforcers()
	page := render(t, r)
	for _, c := range []struct{ what, said, unsaid string }{
		{"an equivalent effect", "≈ equivalent", "✓ equivalent"},
		{"an effect", "+3.0 % [2.1, 3.9]", "+3.0 % [+2.1, +3.9]"},
		{"a treatment", "both RuntimeDefault rules=8", "both seccomp=RuntimeDefault rules=8"},
	} {
		shown, _, _ := strings.Cut(html.UnescapeString(strings.ReplaceAll(page, space, " ")),
			"What was measured under each treatment")
		if !strings.Contains(shown, c.said) {
			t.Errorf("the page does not write %s as %q", c.what, c.said)
		}
		if c.what != "a treatment" && strings.Contains(shown, c.unsaid) {
			t.Errorf("the page writes %s as %q", c.what, c.unsaid)
		}
	}
	for name, r := range pageSamples() {
		numbers := regexp.MustCompile(`<h2 id="q(\d+)">`).FindAllStringSubmatch(render(t, r), -1)
		got := each(numbers, func(m []string) string { return m[1] })
		if want := strings.Split("012345678", "")[:len(got)]; !slices.Equal(got, want) {
			t.Errorf("%s: the questions are numbered %q", name, got)
		}
	}
}

// TestLongTablesAreCutInWords: text and Markdown show the first rows and say how many they leave out; the page has all.
func TestLongTablesAreCutInWords(t *testing.T) {
	r := pageBase("causes")
	o := Operation{Treatment: "default", Operation: "token"}
	for i := range maxCauses + 6 {
		o.Causes = append(o.Causes, Cause{Outcome: "failed", Cause: "cause-" + whole(uint64(i)) + "-", Calls: 1})
	}
	r.Operations = []Operation{o}
	for form, c := range map[string]struct {
		encode Encoder
		rows   int
	}{"text": {Text, maxCauses}, "markdown": {Markdown, maxCauses}, "html": {HTML, maxCauses + 6}} {
		out := string(encode(t, c.encode, r))
		if form == "html" {
			out = bare(out)
		}
		if n := strings.Count(out, "cause-"); n != c.rows {
			t.Errorf("%s: %d causes, want %d", form, n, c.rows)
		}
		if said := strings.Contains(out, "and 6 more rows, which the other forms have"); said != (form != "html") {
			t.Errorf("%s: that rows are left out is said: %v", form, said)
		}
	}
}
