// What the page does by itself: which page is seen, light or dark, waiting until nobody types, the editor's keys.
// Served as a file, so that the browser can be told to run no other script.
(function () {
    "use strict";

    const PAUSE = 350; // milliseconds without a key, until a query is looked at
    const THEMES = ["auto", "light", "dark"];
    const KEPT = "trendloom-theme";
    let waiting = null;

    function theme() {
        try {
            const kept = window.localStorage.getItem(KEPT);
            return THEMES.includes(kept) ? kept : "auto";
        } catch (refused) {
            return "auto";
        }
    }

    function apply(chosen) {
        if (chosen === "auto") {
            document.documentElement.removeAttribute("data-theme");
        } else {
            document.documentElement.setAttribute("data-theme", chosen);
        }
    }

    apply(theme());

    window.dash_clientside = Object.assign({}, window.dash_clientside, {
        trendloom: {
            // The text once nobody has typed for a moment; marks of an earlier text vanish at once.
            settled: function (text) {
                window.clearTimeout(waiting);
                return new Promise(function (resolve) {
                    waiting = window.setTimeout(function () { resolve([text, ""]); }, PAUSE);
                });
            },
            turnTo: function (path) {
                const bench = path === "/workbench";
                document.title = (bench ? "Workbench" : "Monitor") + " · Trendloom";
                window.setTimeout(function () { window.dispatchEvent(new Event("resize")); }, 0);
                return [bench, !bench, bench ? "" : "here", bench ? "here" : "", bench ? "Workbench" : "Monitor"];
            },
            light: function (clicks) {
                let chosen = theme();
                if (clicks) {
                    chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
                    try { window.localStorage.setItem(KEPT, chosen); } catch (refused) { /* lasts as long as the page */ }
                }
                apply(chosen);
                return "Theme: " + chosen;
            },
        },
    });

    // The marks behind the editor move with its text.
    document.addEventListener("scroll", function (event) {
        if (event.target.id === "text") {
            const behind = document.getElementById("underlined");
            behind.scrollTop = event.target.scrollTop;
            behind.scrollLeft = event.target.scrollLeft;
        }
    }, true);

    document.addEventListener("keydown", function (event) {
        if (event.target.id === "text" && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            document.getElementById("run").click();
        }
    });

    document.addEventListener("click", function (event) {
        if (event.target.id === "go-to-problem") {
            const text = document.getElementById("text");
            text.focus();
            text.setSelectionRange(Number(event.target.dataset.from), Number(event.target.dataset.to));
        }
    });
})();
