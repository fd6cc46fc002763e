// Fetches the status of the daemon every two seconds while the page is visible, and shows it. All texts of the daemon
// are set as text, never as markup.
"use strict";

const refreshEvery = 2000; // milliseconds
const answerWithin = 5000; // milliseconds
const shownSeconds = 600;
const documentVersion = 1;

const element = (id) => document.getElementById(id);

// setText changes a text only if it differs, so that selections stay and screen readers say only what is new.
function setText(target, text) {
	if (target.textContent !== text) {
		target.textContent = text;
	}
}

function size(bytes) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let unit = 0;
	for (; bytes >= 1024 && unit < units.length - 1; unit++) {
		bytes /= 1024;
	}
	return `${unit > 0 && bytes < 10 ? bytes.toFixed(1) : Math.floor(bytes)} ${units[unit]}`;
}

const rate = (bytes) => `${size(bytes)}/s`;

function duration(seconds) {
	seconds = Math.max(0, Math.round(seconds));
	const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24;
	const minutes = Math.floor(seconds / 60) % 60;
	if (days > 0) {
		return `${days} d ${hours} h`;
	}
	if (hours > 0) {
		return `${hours} h ${minutes} min`;
	}
	return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

const clock = (text) => new Date(text).toLocaleTimeString();
const dateAndTime = (text) => new Date(text).toLocaleString();
const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
const limit = (value, text) => (value > 0 ? text(value) : "none");
const seconds = (from, to) => (new Date(to) - new Date(from)) / 1000;
const peerOf = (c) => (c.key ? `${c.key} (${c.function})` : c.function);

// claimOf returns who the other side says it is, and the path of its file. Nobody has checked that.
function claimOf(c) {
	const who = [c.claimed_user, c.claimed_machine].filter(Boolean).join("@");
	return [who, c.request?.claimed_file].filter(Boolean).join(":");
}

// fillTable shows one row for each item, and keeps the rows that are there. A cell is a text with a class.
function fillTable(body, rows) {
	while (body.rows.length > rows.length) {
		body.deleteRow(-1);
	}
	rows.forEach((cells, i) => {
		const row = body.rows[i] ?? body.insertRow();
		cells.forEach((cell, j) => {
			const target = row.cells[j] ?? row.insertCell();
			target.className = cell.kind ?? "";
			if (cell.kind === "progress") {
				fillProgress(target, cell);
			} else {
				setText(target, cell.text);
			}
		});
	});
}

// fillProgress shows a bar for a known part of the whole, and a text.
function fillProgress(target, cell) {
	let bar = target.querySelector("progress"), text = target.querySelector("span");
	if (text === null) {
		bar = document.createElement("progress");
		bar.setAttribute("aria-label", "progress of the request");
		text = document.createElement("span");
		target.replaceChildren(bar, text);
	}
	bar.hidden = cell.part === undefined;
	bar.value = cell.part ?? 0;
	setText(text, cell.text);
}

function fillList(list, entries) {
	entries.forEach(([name, text], i) => {
		if (list.children.length <= 2 * i) {
			list.append(document.createElement("dt"), document.createElement("dd"));
		}
		setText(list.children[2 * i], name);
		setText(list.children[2 * i + 1], text);
	});
}

// The bytes of running requests in the document before, for their present rates.
let before = new Map();
let beforeTime = null;

function presentRate(id, request, time) {
	const elapsed = beforeTime === null ? 0 : seconds(beforeTime, time);
	if (!before.has(id) || elapsed <= 0) {
		return request.bytes_per_second;
	}
	return Math.max(0, request.moved_bytes - before.get(id)) / elapsed;
}

const directions = { push: "push (receives)", pull: "pull (sends)" };

function requestRow(connection, time) {
	const request = connection.request, copies = request.operation in directions;
	const speed = presentRate(`${connection.session}/${request.request}`, request, time);
	const known = request.total_bytes !== undefined && request.total_bytes > 0;
	const part = known ? Math.min(1, request.moved_bytes / request.total_bytes) : undefined;
	let where = request.share ? `${request.share}/${request.path ?? ""}` : "";
	if (request.target) {
		where += ` to ${request.target}`;
	}
	let progress = known ? `${Math.floor(100 * part)} %` : duration(seconds(request.began, time));
	if (request.waiting) {
		progress = "waits for a permit";
	}
	let moved = copies ? size(request.moved_bytes) : "";
	if (known) {
		moved += ` of ${size(request.total_bytes)}`;
	}
	const left = known && speed > 0 ? duration((request.total_bytes - request.moved_bytes) / speed) : "";
	const operation = directions[request.operation] ?? request.operation;
	return [
		{ text: peerOf(connection), kind: "short" },
		{ text: claimOf(connection), kind: "claim" },
		{ text: request.dry_run ? `${operation}, dry run` : operation, kind: "short" },
		{ text: where, kind: "name" },
		{ text: progress, kind: "progress", part: request.waiting ? undefined : part },
		{ text: moved, kind: "number" },
		{ text: copies && !request.waiting ? rate(speed) : "", kind: "number" },
		{ text: left, kind: "number" },
	];
}

function showRequests(daemon) {
	const busy = daemon.connections.filter((c) => c.request);
	fillTable(element("requests"), busy.map((c) => requestRow(c, daemon.time)));
	const idle = daemon.connections.length - busy.length;
	const notes = busy.length === 0 ? ["No request is running."] : [];
	if (idle > 0) {
		notes.push(`${count(idle, "connection")} without a request.`);
	}
	if (daemon.pending_connections > 0) {
		notes.push(`${count(daemon.pending_connections, "connection")} not yet authenticated.`);
	}
	setText(element("idle"), notes.join(" "));
	before = new Map(busy.map((c) => [`${c.session}/${c.request.request}`, c.request.moved_bytes]));
	beforeTime = daemon.time;
}

function showFailures(failures) {
	fillTable(element("failures"), failures.toReversed().map((f) => [
		{ text: dateAndTime(f.time), kind: "short" },
		{ text: peerOf(f), kind: "short" },
		{ text: f.what, kind: "name" },
		{ text: f.error, kind: "name" },
		{ text: f.code > 0 ? String(f.code) : "", kind: "number" },
	]));
	setText(element("no-failures"), failures.length === 0 ? "None since the start." : "");
}

function showDaemon(daemon) {
	setText(element("transfers"), `${daemon.running_transfers} of ${daemon.max_transfers}`);
	setText(element("waiting"), String(daemon.waiting_transfers));
	setText(element("connections"), String(daemon.connections.length));
	setText(element("memory"), size(daemon.memory_bytes));
	fillTable(element("shares"), daemon.shares.map((s) => [
		{ text: s.name, kind: "short" }, { text: s.access, kind: "short" }, { text: s.path, kind: "name" },
	]));
	const { totals, limits } = daemon;
	fillList(element("totals"), [
		["Bytes of ended copies", size(totals.bytes)],
		["Requests", `${totals.requests}, ${totals.failed} failed`],
		["Connections", `${totals.connections}, ${totals.refused} refused`],
		["Ended by a defect", String(totals.bugs)],
	]);
	fillList(element("limits"), [
		["Connections", `${limits.connections}, ${limits.key_connections} of a key`],
		["Transfers at once", String(limits.transfers)],
		["Buffers", limit(limits.memory_bytes, size)],
		["Bandwidth", limit(limits.bytes_per_second, rate)],
		["Size of a file", limit(limits.file_bytes, size)],
		["Entries of a tree", limit(limits.tree_entries, String)],
		["Idle timeout", limit(limits.idle_timeout_seconds, duration)],
	]);
	fillList(element("daemon"), [
		["Version", daemon.software],
		["Build", `${daemon.build.go} ${daemon.build.platform}`],
		["Process", String(daemon.pid)],
		["Running for", duration(seconds(daemon.started, daemon.time))],
		["Keys", daemon.auth === "none" ? "any key is accepted" : `${daemon.trusted_keys} trusted`],
	]);
}

// The chart: an area and a line for each direction, over the last ten minutes.
const margin = { left: 76, right: 8, top: 8, bottom: 22 }; // pixels
const chartHeight = 200; // pixels, as in the style sheet

function shape(name, attributes, text) {
	const made = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [key, value] of Object.entries(attributes)) {
		made.setAttribute(key, value);
	}
	if (text !== undefined) {
		made.textContent = text;
	}
	return made;
}

// pointsOf returns [seconds before now, rate] for one direction. Where there is no sample no copy ran.
function pointsOf(rates, direction) {
	const points = [], gap = 1.5 * rates.interval_seconds;
	let last = -shownSeconds - 2 * gap, value = 0;
	for (const sample of rates.samples) {
		const at = -seconds(sample.time, rates.time);
		if (at < -shownSeconds) {
			continue;
		}
		if (at - last > gap) {
			points.push([last, 0], [at - rates.interval_seconds, 0]);
		}
		[last, value] = [at, sample[direction]];
		points.push([last, value]);
	}
	if (-last > gap) {
		points.push([last, 0]);
		value = 0;
	}
	points.push([0, value]);
	return points;
}

// stepsOf returns at most five marks for an axis from 0 to a round value of at least most.
function stepsOf(most) {
	let step = 1;
	while (step * 4 < most) {
		step *= 2; // 1, 2, 4 ... of a binary unit
	}
	const marks = [];
	for (let mark = 0; mark < most + step; mark += step) {
		marks.push(mark);
	}
	return marks;
}

function drawChart(rates) {
	const chart = element("chart"), width = chart.clientWidth || 720;
	const lines = { received: pointsOf(rates, "received"), sent: pointsOf(rates, "sent") };
	const peak = (points) => points.reduce((most, [, value]) => Math.max(most, value), 0);
	const marks = stepsOf(Math.max(4096, peak(lines.received), peak(lines.sent)));
	const bottom = chartHeight - margin.bottom, inner = width - margin.left - margin.right;
	const x = (at) => margin.left + inner * (1 + Math.max(-shownSeconds, Math.min(0, at)) / shownSeconds);
	const y = (value) => bottom - (bottom - margin.top) * value / marks[marks.length - 1];
	const shapes = [];
	for (const mark of marks) {
		const ends = { x1: margin.left, x2: width - margin.right, y1: y(mark), y2: y(mark) };
		shapes.push(shape("line", { class: "grid", ...ends }),
			shape("text", { x: margin.left - 8, y: y(mark) + 4, "text-anchor": "end" }, rate(mark)));
	}
	for (let minutes = 10; minutes >= 0; minutes -= width < 500 ? 5 : 2) {
		const anchor = minutes === 10 ? "start" : minutes === 0 ? "end" : "middle";
		shapes.push(shape("text", { x: x(-60 * minutes), y: chartHeight - 4, "text-anchor": anchor },
			minutes === 0 ? "now" : `−${minutes} min`));
	}
	for (const [name, points] of Object.entries(lines)) {
		const corners = points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
		const area = [...corners, `${x(0)},${bottom}`, `${margin.left},${bottom}`];
		shapes.push(shape("polygon", { class: name, points: area.join(" ") }),
			shape("polyline", { class: name, points: corners.join(" ") }));
	}
	chart.setAttribute("viewBox", `0 0 ${width} ${chartHeight}`);
	chart.replaceChildren(...shapes);
	const now = (points) => points[points.length - 1][1];
	setText(element("receiving"), rate(now(lines.received)));
	setText(element("sending"), rate(now(lines.sent)));
	setText(element("chart-text"),
		`Peaks: received ${rate(peak(lines.received))}, sent ${rate(peak(lines.sent))}`);
}

// The text of the only failure that does not pass by itself, such as after an upgrade of the daemon.
const otherVersion = "the daemon is of another version, reload the page";

async function fetchDocument(path) {
	const response = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(answerWithin) });
	if (!response.ok) {
		throw new Error(`${path}: HTTP status ${response.status}`);
	}
	const answer = await response.json();
	if (answer.v !== documentVersion) {
		throw new Error(otherVersion);
	}
	return answer;
}

function showState(state, text) {
	element("state").dataset.state = state;
	setText(element("state"), text);
	document.body.classList.toggle("stale", state === "lost");
}

let rates = null; // the last ones, to be drawn again in another size

async function refresh() {
	try {
		const [daemon, latest] = await Promise.all([fetchDocument("status.json"), fetchDocument("rates.json")]);
		rates = latest;
		drawChart(rates);
		showDaemon(daemon);
		showRequests(daemon);
		showFailures(daemon.failures);
		showState(daemon.draining ? "draining" : "running", daemon.draining ? "draining: no new requests" : "running");
		setText(element("updated"), `updated ${clock(daemon.time)}`);
		document.title = `dma-copy: ${count(daemon.running_transfers, "transfer")}`;
	} catch (failure) {
		const text = failure.message === otherVersion ? otherVersion : "the daemon does not answer, trying again";
		showState("lost", text);
		document.title = "dma-copy: no status";
		console.warn(failure.message);
	}
}

// One refresh at a time, and none while the page is hidden.
let timer = 0, refreshing = false;

async function run() {
	clearTimeout(timer);
	if (document.hidden || refreshing) {
		return;
	}
	refreshing = true;
	await refresh();
	refreshing = false;
	timer = setTimeout(run, refreshEvery);
}

document.addEventListener("visibilitychange", run);
window.addEventListener("resize", () => rates !== null && drawChart(rates));
run();
