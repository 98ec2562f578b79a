// SPDX-License-Identifier: BSD-2-Clause
// The profile of a page, and what is made of it: trees, their layout, search, the table. Nothing here knows the document: tests run it
// under node. Frames, nodes, samples and labels are numbers; of what belongs to them there is an array each.
'use strict';

const DIGITS = new Uint8Array(128);
for (let i = 0; i < 64; i++)
	DIGITS['ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'.charCodeAt(i)] = i;

// Reads the VLQ numbers that page.h describes.
class Vlq {
	constructor(text) {
		this.text = text;
		this.at = 0;
	}

	get more() {
		return this.at < this.text.length;
	}

	next() {
		const first = DIGITS[this.text.charCodeAt(this.at++)];

		return first < 32 ? first : this.rest(first & 31, 32);
	}

	// The first digit has the sign: a number of more than 53 bits loses low bits, not this one.
	signed() {
		const first = DIGITS[this.text.charCodeAt(this.at++)], value = (first & 31) >> 1;
		const all = first & 32 ? this.rest(value, 16) : value;

		return first & 1 ? -all : all;
	}

	rest(value, weight) {
		let digit;

		do {
			digit = DIGITS[this.text.charCodeAt(this.at++)];
			value += (digit & 31) * weight;
			weight *= 32;
		} while (digit & 32);
		return value;
	}
}

// ---- The profile ----

function decodeFrames(data) {
	const cnt = data.names.length, digits = new Vlq(data.frames);
	const object = new Uint32Array(cnt), file = new Uint32Array(cnt);

	for (let i = 0; i < cnt; i++) {
		object[i] = digits.next();
		file[i] = digits.next();
	}
	return { object, file };
}

// For each key the value's index in each set; -1: the set has none.
function decodeSets(data) {
	const columns = data.keys.map(() => []), digits = new Vlq(data.sets);

	for (let set = 0; digits.more; set++) {
		for (const column of columns)
			column.push(-1);
		for (let labels = digits.next(); labels > 0; labels--) {
			const key = digits.next();

			columns[key][set] = digits.next();
		}
	}
	return columns.map((column) => Int32Array.from(column));
}

// The tree of stacks, parents before their children, -1 above the first ones; and the samples, each at the node of its leaf.
function decodeStacks(data) {
	const most = data.stacks.length; // each takes a digit, or more
	const parent = new Int32Array(most), frame = new Int32Array(most), depth = new Int32Array(most);
	const node = [], set = [], value = data.types.map(() => []);
	const callees = Array.from({ length: data.names.length + 1 }, () => []); // the last: of the root
	const digits = new Vlq(data.stacks);
	let cnt = 0;

	for (let last = -1; digits.more;) {
		for (let up = digits.next(); up > 0; up--)
			last = parent[last];
		for (let down = digits.next(); down > 0; down--) {
			const known = callees[last < 0 ? data.names.length : frame[last]], number = digits.next();

			if (!number)
				known.push(digits.next());
			frame[cnt] = known[number ? number - 1 : known.length - 1];
			parent[cnt] = last;
			depth[cnt] = last < 0 ? 1 : depth[last] + 1;
			last = cnt++;
		}
		for (let samples = digits.next(); samples > 0; samples--) {
			node.push(last);
			set.push(digits.next());
			for (let t = 0; t < value.length; t++)
				value[t].push(digits.signed() * data.types[t].scale);
		}
	}
	return {
		parent: parent.slice(0, cnt),
		frame: frame.slice(0, cnt),
		depth: depth.slice(0, cnt),
		node: Int32Array.from(node),
		set: Int32Array.from(set),
		value: value.map((column) => Float64Array.from(column)),
	};
}

function decode(data) {
	return splitSides({ ...data, ...decodeFrames(data), ...decodeStacks(data), label: decodeSets(data) });
}

// The samples that have this value of a label; all, if there is no key (-1).
function selectSamples(model, key, value) {
	const samples = [];

	for (let s = 0; s < model.node.length; s++)
		if (key < 0 || model.label[key][model.set[s]] === value)
			samples.push(s);
	return samples;
}

// The values of a label that these samples have, the largest sum of a value type first: [{value, sum}].
function labelValues(model, samples, key, type) {
	const sums = new Map();

	for (const s of samples) {
		const value = model.label[key][model.set[s]];

		if (value >= 0)
			sums.set(value, (sums.get(value) || 0) + model.value[type][s]);
	}
	return [...sums].map(([value, sum]) => ({ value, sum })).sort((a, b) => b.sum - a.sum || a.value - b.value);
}

// What a frame is part of: label, marker, kernel, code made at run time, library, program.
function kindOf(model, frame) {
	if (frame >= model.names.length)
		return 'label';
	const object = model.places[model.object[frame]];

	if (!object)
		return model.names[frame].startsWith('[') ? 'marker' : 'program';
	if (object.startsWith('//anon') || object.startsWith('[anon') || object.startsWith('/memfd:'))
		return 'generated';
	if (object.startsWith('[') && object !== '[vdso]')
		return 'kernel';
	return /\.so(\.|$)|^(\/usr)?\/lib|^\[vdso\]$/.test(object) ? 'library' : 'program';
}

// ---- Trees ----

// Samples of which neighbours have the most in common, seen from where the tree begins.
function sortSamples(model, samples, splitOf, inverted) {
	const { parent, frame, node } = model;
	const upwards = (a, b) => {
		while (a !== b) {
			if (a < 0 || b < 0)
				return a < 0 ? -1 : 1;
			if (frame[a] !== frame[b])
				return frame[a] - frame[b];
			a = parent[a];
			b = parent[b];
		}
		return 0;
	};

	if (!inverted && !splitOf)
		return samples; // as they come
	return [...samples].sort((a, b) => (splitOf && splitOf[a] - splitOf[b]) || (inverted ? upwards(node[a], node[b]) : a - b));
}

// The tree of these samples. Node 0 is all of them, and has frame -1; nodes are in preorder: children of i begin at i + 1, the next
// of a child c is end[c], those below i are up to end[i]. total and self have an array for each value type.
//
//     split      a label's key, whose values are frames below node 0, numbered behind the others; -1: none. "No value" is the last.
//     inverted   begins at the leaves
function buildTree(model, samples, { split = -1, inverted = false } = {}) {
	const none = model.names.length + (split < 0 ? 0 : model.values[split].length);
	const splitOf = split < 0 ? null : Int32Array.from(model.set, (set) => {
		const value = model.label[split][set];

		return value < 0 ? none : model.names.length + value;
	});
	const extra = splitOf ? 1 : 0;
	const deepest = samples.reduce((most, s) => Math.max(most, model.depth[model.node[s]] + extra), 0);
	const at = new Int32Array(deepest + 1), path = new Int32Array(deepest); // the nodes of the last sample, the frames of this one
	let parent = new Int32Array(model.frame.length + deepest + 1), frame = new Int32Array(parent.length);
	let self = model.value.map(() => new Float64Array(parent.length)), cnt = 1, last = 0;

	frame[0] = -1;
	for (const s of sortSamples(model, samples, splitOf, inverted)) {
		const len = model.depth[model.node[s]] + extra;
		let common = 0;

		if (splitOf)
			path[0] = splitOf[s];
		for (let n = model.node[s], i = inverted ? extra : len - 1; n >= 0; n = model.parent[n], i += inverted ? 1 : -1)
			path[i] = model.frame[n];
		while (common < len && common < last && frame[at[common + 1]] === path[common])
			common++;
		if (cnt + len > parent.length) {
			[parent, frame] = [parent, frame].map((column) => roomFor(column, cnt + len));
			self = self.map((column) => roomFor(column, cnt + len));
		}
		for (let i = common; i < len; i++) {
			parent[cnt] = at[i];
			frame[cnt] = path[i];
			at[i + 1] = cnt++;
		}
		last = len;
		for (let t = 0; t < self.length; t++)
			self[t][at[len]] += model.value[t][s];
	}
	return { cnt, split, inverted, parent, frame, self, ...sumUp(parent, self, cnt) };
}

// The same numbers, with room for so many, and half as many more.
function roomFor(column, need) {
	const larger = new column.constructor(need + (need >> 1));

	larger.set(column);
	return larger;
}

// What nodes are with all below them.
function sumUp(parent, self, cnt) {
	const end = new Int32Array(cnt), total = self.map((column) => column.slice(0, cnt));

	for (let i = cnt - 1; i > 0; i--) {
		end[i] = Math.max(end[i], i + 1);
		end[parent[i]] = Math.max(end[parent[i]], end[i]);
		for (const column of total)
			column[parent[i]] += column[i];
	}
	end[0] = cnt;
	return { end, total };
}

function frameName(model, tree, frame) {
	if (frame < 0)
		return 'all';
	if (frame < model.names.length)
		return model.names[frame];
	const values = model.values[tree.split], value = frame - model.names.length;

	return value < values.length ? values[value] : `no ${model.keys[tree.split]}`;
}

// ---- Layout ----

// Children that are at least so large, the largest first.
function childrenOf(tree, total, node, least) {
	const children = [];

	for (let c = node + 1; c < tree.end[node]; c = tree.end[c])
		if (total[c] >= least && total[c] > 0)
			children.push(c);
	if (children.length > 1)
		children.sort((a, b) => total[b] - total[a] || tree.frame[a] - tree.frame[b]);
	return children;
}

// Rows of boxes {node, x, width}, from the tree's root on, each sorted by x. `focus` and all above it are as wide as the picture; what is
// narrower than `narrowest` is left out, with all below it. `total` is of each node how wide it is to be, without it its value of a type.
function layout(tree, { type, total = tree.total[type], focus = 0, width, narrowest = 0.5 }) {
	const rows = [];
	// where some are below zero, the others may be more than all of them
	const whole = Math.max(total[focus], childrenOf(tree, total, focus, 0).reduce((sum, node) => sum + total[node], 0));
	const scale = whole > 0 ? width / whole : 0;

	for (let n = focus; n > 0; n = tree.parent[n])
		rows.unshift([{ node: tree.parent[n], x: 0, width }]);
	const todo = [{ node: focus, x: 0, width, row: rows.length }];

	while (todo.length) {
		const box = todo.pop();
		const children = scale ? childrenOf(tree, total, box.node, narrowest / scale) : [];
		const fit = Math.min(1, box.width / children.reduce((sum, node) => sum + total[node] * scale, 0));
		let x = box.x;

		(rows[box.row] = rows[box.row] || []).push({ node: box.node, x: box.x, width: box.width });
		const placed = children.map((node) => {
			const child = { node, x, width: total[node] * scale * fit, row: box.row + 1 };

			x += child.width;
			return child;
		});
		while (placed.length)
			todo.push(placed.pop());
	}
	return rows;
}

// The index of the box at x in a row; -1: there is none.
function boxAt(row, x) {
	let low = 0, high = row.length;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (row[middle].x <= x)
			low = middle + 1;
		else
			high = middle;
	}
	return low && x < row[low - 1].x + row[low - 1].width ? low - 1 : -1;
}

// Where an arrow leads from a box, both as [row, index]: 'in' to the largest child, 'out' to the parent, 'left' and 'right' in the row.
function neighbour(rows, [row, index], where) {
	const box = rows[row][index];

	if (where === 'left')
		return [row, Math.max(index - 1, 0)];
	if (where === 'right')
		return [row, Math.min(index + 1, rows[row].length - 1)];
	if (where === 'out')
		return row ? [row - 1, boxAt(rows[row - 1], box.x)] : [row, index];
	const child = rows[row + 1] ? boxAt(rows[row + 1], box.x) : -1;

	return child < 0 ? [row, index] : [row + 1, child];
}

// ---- Search ----

// Which frames a regular expression finds, in name, object or source file, upper and lower case alike: {match, cnt}; {error} if it is none.
function search(model, pattern) {
	const match = new Uint8Array(model.names.length);
	let re, cnt = 0;

	try {
		re = new RegExp(pattern, 'i');
	} catch (e) {
		return { error: e.message };
	}
	const places = model.places.map((place) => place !== '' && re.test(place));

	for (let i = 0; i < match.length; i++) {
		match[i] = re.test(model.names[i]) || places[model.object[i]] || places[model.file[i]] ? 1 : 0;
		cnt += match[i];
	}
	return { match, cnt };
}

// What of a node and all below it has a frame that matches, each sample once.
function matchedTotal(tree, match, type, node = 0) {
	let sum = 0;

	for (let i = node; i < tree.end[node];) {
		if (match[tree.frame[i]]) {
			sum += tree.total[type][i];
			i = tree.end[i];
		} else {
			i++;
		}
	}
	return sum;
}

// A pattern that finds this name, and what is called the same.
function exactly(name) {
	return `^${name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}$`;
}

// ---- Table ----

// For each frame what it costs by itself and with all that it called, recursion counted once.
function costs(model, samples, type) {
	const flat = new Float64Array(model.names.length), cum = new Float64Array(model.names.length);
	const seen = new Int32Array(model.names.length).fill(-1);

	for (const s of samples) {
		const value = model.value[type][s];

		flat[model.frame[model.node[s]]] += value;
		for (let n = model.node[s]; n >= 0; n = model.parent[n]) {
			const frame = model.frame[n];

			if (seen[frame] !== s) {
				seen[frame] = s;
				cum[frame] += value;
			}
		}
	}
	return { flat, cum };
}

// Frames that cost something and, with `match`, are found: by a column of the costs (largest first, a difference of either sign; then by the
// others), or by 'name'; backwards if `reverse`.
function tableRows(model, cost, { by, reverse = false, match = null }) {
	const rows = [], byName = (a, b) => (model.names[a] < model.names[b] ? -1 : +(model.names[a] > model.names[b])) || a - b;
	const size = by === 'difference' ? Math.abs : (v) => v, columns = Object.values(cost), order = [cost[by], ...columns];

	for (let i = 0; i < model.names.length; i++)
		if (columns.some((column) => column[i]) && (!match || match[i]))
			rows.push(i);
	rows.sort(by === 'name' ? byName : (a, b) => {
		const column = order.find((c) => size(c[a]) !== size(c[b]));

		return column ? size(column[b]) - size(column[a]) : byName(a, b);
	});
	return reverse ? rows.reverse() : rows;
}

// ---- Numbers for people ----

const NANOSECONDS = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };
const TIME = [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9], ['min', 60e9], ['h', 3600e9]];
const BYTES = [['B', 1], ['kB', 1024], ['MB', 1024 ** 2], ['GB', 1024 ** 3], ['TB', 1024 ** 4]];

function formatCount(n) {
	return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

function formatValue(value, unit) {
	const scales = NANOSECONDS[unit] ? TIME : unit === 'bytes' ? BYTES : null;
	const v = value * (NANOSECONDS[unit] || 1);

	if (!scales)
		return `${formatCount(v)}${unit === 'count' || !unit ? '' : ` ${unit}`}`;
	if (!v)
		return '0';
	const [suffix, size] = scales.filter(([, least]) => Math.abs(v) >= least).pop() || scales[0];
	const number = v / size, digits = Number.isInteger(number) ? 0 : Math.abs(number) >= 100 ? 1 : 2;

	return `${number.toFixed(digits)} ${suffix}`;
}

function formatShare(part, whole) {
	const percent = whole ? (part / whole) * 100 : 0;

	if (percent === 0 || percent === 100)
		return `${percent} %`;
	return Math.abs(percent) < 0.01 ? '< 0.01 %' : `${percent.toFixed(2)} %`;
}
