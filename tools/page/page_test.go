package page

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/dma-copy/dma-copy/tools/daemon"
)

var (
	browserName = flag.String("browser", "chromium", "browser to start")
	screenshots = flag.String("screenshots", "", "directory for pictures of the page")
)

const (
	grace = time.Minute
	// hostile is the name of a file that would change a page in which it is markup.
	hostile = `<img src=x onerror="window.attacked=1">`
)

// tab is a page in a browser of its own.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // errors of the page and of the browser about it
	urls     []string // that it has asked for
}

func open(t *testing.T, url string) *tab {
	t.Helper()
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(*browserName), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WindowSize(1200, 1250),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("enable-blink-features", "ComputedAccessibilityInfo"),
	})
	ctx, cancel := context.WithTimeout(context.Background(), 2*grace)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	p := &tab{t: t}
	ctx, closeTab := chromedp.NewContext(ctx, chromedp.WithListener(p.observe))
	t.Cleanup(closeTab)
	p.ctx = ctx
	p.do(call(log.Enable, cdp.Empty{}), call(network.Enable, network.EnableParams{}), call(runtime.Enable, cdp.Empty{}),
		chromedp.Navigate(url))
	return p
}

// call returns the action that sends a command to the browser.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

// observe notes what goes wrong in the page, such as a violation of its policy, and what it loads.
func (p *tab) observe(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, fmt.Sprintf("%+v", *event.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		for _, argument := range event.Args {
			p.problems = append(p.problems, fmt.Sprintf("console: %s", argument.Value))
		}
	case *log.EventEntryAdded:
		p.problems = append(p.problems, fmt.Sprintf("%s: %s %s", event.Entry.Source, event.Entry.Text, event.Entry.URL))
	case *network.EventRequestWillBeSent:
		p.urls = append(p.urls, event.Request.URL)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](p *tab, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// waitFor waits until an expression is true.
func (p *tab) waitFor(expression string) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Poll[any](expression, chromedp.WithPollingTimeout(grace)))
	if err != nil {
		p.t.Fatalf("%s: %v; the page is\n%s", expression, err, evaluate[string](p, "document.body.innerText"))
	}
}

// expect checks that an expression is true.
func (p *tab) expect(expression string) {
	p.t.Helper()
	if !evaluate[bool](p, expression) {
		p.t.Errorf("not true: %s", expression)
	}
}

// scheme has the page shown in light or dark colours.
func (p *tab) scheme(name string) {
	p.t.Helper()
	feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: name}
	p.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{feature},
	}))
	if *screenshots != "" {
		picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

// unreadable returns the texts whose contrast with what is behind them is below 4.5, the minimum of WCAG 2.2 (AA).
const unreadable = `(() => {
	const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
	const light = (colour) => {
		const [r, g, b] = parse(colour).map((c) => c / 255)
			.map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const colour = getComputedStyle(e).backgroundColor;
			if (parse(colour)[3] !== 0) {
				return light(colour);
			}
		}
		return 1;
	};
	const bad = [];
	for (const e of document.querySelectorAll("body *")) {
		const text = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim() !== "");
		if (!text || e.closest("noscript")) {
			continue;
		}
		const style = getComputedStyle(e);
		const [a, b] = [light(e.closest("svg") ? style.fill : style.color), behind(e)];
		const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (contrast < 4.5) {
			bad.push(e.textContent + " " + contrast.toFixed(2));
		}
	}
	return bad;
})()`

func (p *tab) expectReadable(scheme string) {
	p.t.Helper()
	p.scheme(scheme)
	if bad := evaluate[[]string](p, unreadable); len(bad) > 0 {
		p.t.Errorf("the contrast in %s colours is too low: %q", scheme, bad)
	}
}

// expectNoProblems checks that neither the page nor its policy has failed, and that nothing came from elsewhere.
func (p *tab) expectNoProblems(url string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.t.Error(problem)
	}
	if len(p.urls) < 5 {
		p.t.Errorf("the page has loaded %q only", p.urls)
	}
	for _, each := range p.urls {
		if !strings.HasPrefix(each, url+"/") {
			p.t.Errorf("the page has loaded %s", each)
		}
	}
}

func TestStatusPage(t *testing.T) {
	d := daemon.Start(t, "--status-page")
	if err := os.WriteFile(d.Share(hostile), make([]byte, 64<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-d.Command("pull", d.Remote("missing"), "missing"); err == nil {
		t.Fatal("a pull of a missing file has succeeded")
	}
	d.Command("pull", "--bwlimit", "512KiB", d.Remote(hostile), "copy")
	p := open(t, d.URL+"/")

	// The running copy, with a name that is text and no markup, and its progress.
	p.waitFor(`document.querySelector("#requests td.name")?.textContent.includes("files/<img src=x")`)
	p.expect(`document.images.length === 0 && window.attacked === undefined`)
	p.expect(`document.querySelector("#requests td").textContent.startsWith("laptop (")`)
	p.expect(`/^[^:]+:\/.*\/copy$/.test(document.querySelector("#requests td.claim").textContent)`)
	p.expect(`document.querySelector("#requests").closest("table").tHead.textContent.includes("(not checked)")`)
	p.waitFor(`document.querySelector("#requests progress")?.value > 0.01`)
	p.waitFor(`/^[1-9].*iB.s$/.test(document.getElementById("sending").textContent)`)
	p.expect(`document.querySelector("#chart polyline.sent").points.numberOfItems > 3`)
	p.expect(`document.getElementById("state").textContent === "running" && document.title === "dma-copy: 1 transfer"`)
	p.expect(`document.getElementById("failures").textContent.includes("missing does not exist")`)
	p.expect(`document.getElementById("limits").textContent.includes("64, 16 of a key")`)

	// Keyboards and screen readers.
	p.expect(`document.getElementById("chart").computedName.includes("Throughput of the last 10 minutes Peaks: ")`)
	p.expect(`document.querySelector("progress").computedName === "progress of the request"`)
	p.expect(`[...document.querySelectorAll("section, .scroll")].every((e) => e.computedName !== "")`)
	p.expect(`[...document.querySelectorAll("thead th")].every((e) => e.computedRole === "columnheader")`)
	p.do(chromedp.KeyEvent("\t"))
	p.expect(`document.activeElement.classList.contains("scroll")`)
	p.expectReadable("light")
	p.expectReadable("dark")

	// A narrow window scrolls tables, not the page.
	p.do(chromedp.EmulateViewport(360, 800))
	p.expect(`document.documentElement.scrollWidth <= 360`)

	p.expectNoProblems(d.URL)
	d.Kill()
	p.expectLost()
}

// expectLost expects the page to say that what it shows is old.
func (p *tab) expectLost() {
	p.t.Helper()
	p.waitFor(`document.getElementById("state").dataset.state === "lost" && document.body.classList.contains("stale")`)
}

// A page that is older than the daemon says so, and not that there is no answer.
func TestDaemonOfAnotherVersion(t *testing.T) {
	d := daemon.Start(t, "--status-page")
	p := open(t, d.URL+"/")
	p.waitFor(`document.getElementById("state").textContent === "running"`)
	evaluate[bool](p, `(window.fetch = async () => new Response('{"v": 2}')) !== undefined`)
	p.expectLost()
	p.expect(`document.getElementById("state").textContent.includes("reload the page")`)
}

// Without JavaScript the page says where else its content is.
func TestWithoutJavaScript(t *testing.T) {
	d := daemon.Start(t, "--status-page")
	p := open(t, "about:blank")
	p.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}),
		chromedp.Navigate(d.URL+"/"))
	p.expect(`document.querySelector("noscript").innerText.includes("This page needs JavaScript.")`)
}
