// SPDX-License-Identifier: BSD-2-Clause
// What is made of a profile that has two sides, a difference. As in model.js, nothing here knows the document.

// Samples of the base, in a difference as pprof has it, have this label, and the sign of their values turned.
const BASE = { key: 'pprof::base', value: 'true' };

// The values of the base become columns of their own, behind those of the new side; `differs` says that they are there.
function splitSides(model) {
	const key = model.keys.indexOf(BASE.key);

	if (key < 0)
		return { ...model, differs: false };
	const ofBase = Array.from(model.set, (set) => model.values[key][model.label[key][set]] === BASE.value);
	const others = (list) => list.filter((_, k) => k !== key);
	const now = model.value.map((column) => column.map((v, s) => (ofBase[s] ? 0 : v)));
	const base = model.value.map((column) => column.map((v, s) => (ofBase[s] ? 0 - v : 0)));

	return {
		...model, differs: true, value: [...now, ...base], keys: others(model.keys), values: others(model.values), label: others(model.label),
		// by frame, -1: of all
		judged: model.judged && new Map(model.judged.map((note) => [note.frame === undefined ? -1 : note.frame, note])),
	};
}

// The column of a type's values in the base.
function baseOf(model, type) {
	return model.types.length + type;
}

// How a cost changed: 0 not at all, 0.5 it doubled, 1 it is new; -0.5 half of it is left, -1 it is gone. What others cost plays no part.
function changeOf(base, now) {
	const most = Math.max(Math.abs(base), Math.abs(now));

	return most ? Math.max(-1, Math.min(1, (now - base) / most)) : 0;
}

// What was judged of a frame's cost (-1: of all): with what it calls, or by itself; a sign of 0: nothing that is certain.
function judgedOf(model, frame, self) {
	const note = model.judged.get(frame) || {};

	return (self ? note.self : note.cum) || { sign: 0, common: 1 };
}

// Of a node, base values times `scale`. Where it was judged only what is certain of its function counts; from the leaves that is the leaf's.
function changeOfNode(model, tree, node, type, scale) {
	const base = tree.total[baseOf(model, type)][node] * scale, now = tree.total[type][node];
	let leaf = node;

	if (!model.judged)
		return changeOf(base, now);
	while (tree.inverted && tree.parent[leaf] > 0)
		leaf = tree.parent[leaf];
	const { sign, common } = judgedOf(model, tree.frame[leaf], tree.inverted && leaf > 0), change = changeOf(base * common, now);

	return Math.sign(change) === sign ? change : 0;
}

// What the base is multiplied by so that both cost the same in all.
function equalScale(model, tree, type) {
	const base = tree.total[baseOf(model, type)][0];

	return base > 0 && tree.total[type][0] > 0 ? tree.total[type][0] / base : 1;
}

// How wide nodes are to be: what they cost now, and what is gone, which is only in the base.
function widthsWithGone(model, tree, type, scale) {
	const now = tree.total[type], base = tree.self[baseOf(model, type)], width = tree.self[type].slice(0, tree.cnt);

	for (let i = tree.cnt - 1; i >= 0; i--) {
		if (!now[i])
			width[i] += base[i] * scale;
		if (i)
			width[tree.parent[i]] += width[i];
	}
	return width;
}

// What each frame costs on both sides, by one of the two measures of costs(), the base times `scale`.
function differences(model, samples, type, measure, scale = 1) {
	const now = costs(model, samples, type)[measure], base = costs(model, samples, baseOf(model, type))[measure].map((v) => v * scale);

	return { difference: now.map((v, frame) => v - base[frame]), now, base };
}

function formatDifference(value, unit) {
	return `${value > 0 ? '+' : ''}${formatValue(value, unit)}`;
}

// Of the base; without one, or without anything left, there is no share to tell.
function formatChange(base, now) {
	const percent = ((now - base) / Math.abs(base)) * 100;

	if (!base || !now)
		return base ? 'gone' : now ? 'new' : '';
	// what was scaled is off by its last bits
	if (Math.abs(percent) < 1e-9)
		return 'same';
	return `${percent > 0 ? '+' : ''}${Math.abs(percent) < 1000 ? percent.toFixed(Math.abs(percent) < 100 ? 2 : 0) : formatCount(percent)} %`;
}
