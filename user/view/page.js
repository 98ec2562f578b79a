// What is on the screen. Names come from strangers: they become text of nodes and pixels, never HTML.
function start() {
	const ROW = 18, LEAST_TEXT = 34, ROWS_AT_ONCE = 200, MOST_PRINTED = 400;
	const $ = (id) => document.getElementById(id);
	const model = decode(JSON.parse($('profile').textContent));
	const graph = $('graph'), canvas = $('canvas'), context = canvas.getContext('2d');
	const dark = matchMedia('(prefers-color-scheme: dark)');
	const state = {
		type: model.show, split: -1, key: -1, value: -1, inverted: false, up: false, gone: false, scaled: false, measure: 'flat',
		by: model.differs ? 'difference' : 'flat', reverse: false, shown: ROWS_AT_ONCE,
		focus: 0, current: null, found: null, printing: false,
	};
	let samples, tree, rows, cost, scale = 1, drawing = 0; // scale: of the base

	function element(name, text, className) {
		const e = document.createElement(name);

		e.textContent = text;
		if (className)
			e.className = className;
		return e;
	}

	const value = (v) => formatValue(v, model.types[state.type].unit);
	const name = (node) => frameName(model, tree, tree.frame[node]);
	const base = (node, type = state.type) => tree.total[baseOf(model, type)][node] * scale;

	// "120 ms; base 100 ms, +20 ms, +20.00 %"
	function compared(before, now, text) {
		if (!model.differs)
			return text;
		const change = formatChange(before, now), difference = formatDifference(now - before, model.types[state.type].unit);

		return [`${text}; base ${value(before)}`, change === 'same' ? '' : difference, change].filter((s) => s).join(', ');
	}

	// ---- Colours: the hue says what a frame is part of, shades tell neighbours apart ----

	const KINDS = {
		program: { text: 'program', hue: 32, spread: 14, saturation: 88 },
		library: { text: 'libraries', hue: 196, spread: 14, saturation: 55 },
		kernel: { text: 'kernel', hue: 268, spread: 16, saturation: 50 },
		generated: { text: 'made at run time', hue: 146, spread: 14, saturation: 45 },
		label: { text: 'label', hue: 215, spread: 0, saturation: 12 },
		marker: { text: 'not unwound', hue: 215, spread: 0, saturation: 6 },
	};
	const colours = new Map();

	function shade(kind, chance) {
		const { hue, spread, saturation } = KINDS[kind];
		const night = dark.matches && !state.printing, light = night ? 30 + chance * 8 : 70 + chance * 10;

		return `hsl(${Math.round(hue + (chance - 0.5) * 2 * spread)} ${night ? saturation * 0.7 : saturation}% ${light}%)`;
	}

	// Of a difference: red is more, blue is less, the stronger the more it changed, from the grey of what is the same. What is certain is to be
	// seen, however little it is.
	function tint(change) {
		const night = dark.matches && !state.printing, least = model.judged && change ? 0.3 : 0;
		const strength = least + (1 - least) * Math.sqrt(Math.abs(change));
		const [saturation, light] = night ? [8 + 58 * strength, 30 + 8 * strength] : [8 + 76 * strength, 87 - 19 * strength];

		return `hsl(${change > 0 ? 8 : 214} ${saturation}% ${light}%)`;
	}

	// The same name has the same colour in every profile.
	function colourOf(node) {
		const frame = tree.frame[node];
		let colour = colours.get(frame), hash = 0;

		if (model.differs)
			return tint(changeOfNode(model, tree, node, state.type, scale));
		if (colour)
			return colour;
		for (const c of name(node))
			hash = (Math.imul(hash, 31) + c.codePointAt(0)) | 0;
		colour = frame < 0 ? shade('marker', 0.5) : shade(kindOf(model, frame), ((hash ^ (hash >>> 15)) & 255) / 255);
		colours.set(frame, colour);
		return colour;
	}

	function legendEntry(text, colour) {
		const entry = element('span', ''), sample = element('i', '');

		sample.style.background = colour;
		entry.append(sample, text);
		return entry;
	}

	function drawLegend() {
		const kinds = new Set(model.names.map((_, frame) => kindOf(model, frame)));

		if (state.split >= 0)
			kinds.add('label');
		$('legend').replaceChildren(...(model.differs ? [['gone', -1], ['half', -0.5], [model.judged ? 'not certain' : 'same', 0],
			['+10 %', 1 / 11], ['doubled', 0.5], ['new', 1]].map(([text, change]) => legendEntry(text, tint(change))) :
			Object.keys(KINDS).filter((kind) => kinds.has(kind)).map((kind) =>
				legendEntry(kind === 'label' ? model.keys[state.split] : KINDS[kind].text, shade(kind, 0.5)))));
	}

	// ---- The graph ----

	const height = () => Math.max(rows.length * ROW, state.up && !state.printing ? graph.clientHeight : 0);
	const topOf = (row) => (state.up ? height() - (row + 1) * ROW : row * ROW);

	function arrange() {
		const total = state.gone ? widthsWithGone(model, tree, state.type, scale) : tree.total[state.type];

		rows = layout(tree, { total, focus: state.focus, width: graph.clientWidth });
		$('space').style.height = `${height()}px`;
		mark(null);
		requestDraw();
	}

	function requestDraw() {
		if (!drawing)
			drawing = requestAnimationFrame(draw);
	}

	function drawBox(box, y, theme) {
		const x = Math.round(box.x * theme.scale) / theme.scale, right = Math.round((box.x + box.width) * theme.scale) / theme.scale;
		const width = right - x > 2 ? right - x - 1 : Math.max(right - x, 1 / theme.scale), frame = tree.frame[box.node];
		const found = state.found && state.found.match[frame];

		context.globalAlpha = state.found && !found ? 0.28 : box.node !== state.focus && state.focus > box.node && tree.end[box.node] > state.focus ? 0.55 : 1;
		context.fillStyle = found ? theme.found : colourOf(box.node);
		context.fillRect(x, y, width, ROW - 1);
		if (width < LEAST_TEXT)
			return;
		const text = name(box.node), room = Math.floor((width - 8) / theme.letter);

		context.globalAlpha = state.found && !found ? 0.6 : 1;
		context.fillStyle = found ? theme.foundText : theme.text;
		context.fillText(text.length <= room ? text : `${text.slice(0, room - 1)}…`, x + 4, y + ROW / 2);
	}

	// The rows that can be seen; all of them on paper.
	function draw() {
		const night = dark.matches && !state.printing, scale = state.printing ? 2 : devicePixelRatio || 1;
		const width = graph.clientWidth, seen = state.printing ? Math.min(height(), MOST_PRINTED * ROW) : graph.clientHeight;
		const scrolled = state.printing ? 0 : graph.scrollTop;

		drawing = 0;
		if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(seen * scale)) {
			canvas.width = Math.round(width * scale);
			canvas.height = Math.round(seen * scale);
			canvas.style.height = `${seen}px`;
		}
		context.setTransform(scale, 0, 0, scale, 0, 0);
		context.clearRect(0, 0, width, seen);
		context.font = `12px ${getComputedStyle(document.body).getPropertyValue('--mono')}`;
		context.textBaseline = 'middle';
		const theme = {
			scale, letter: context.measureText('m').width, text: night ? '#f1f3f6' : '#20242a',
			// between red and blue it is yellow
			found: model.differs ? (night ? '#a88400' : '#ffd23f') : night ? '#c2327f' : '#d6267e',
			foundText: model.differs && !night ? '#20242a' : '#ffffff',
		};

		for (let row = 0; row < rows.length; row++) {
			const y = topOf(row) - scrolled;

			if (y > -ROW && y < seen)
				for (const box of rows[row])
					drawBox(box, y, theme);
		}
	}

	function zoom(node) {
		state.focus = node;
		arrange();
		graph.scrollTop = state.up ? height() : 0;
		say();
	}

	// ---- What is pointed at ----

	function tipRow(texts, tag, shown) {
		const row = element('tr', '', shown ? 'shown' : '');

		texts.forEach((text, i) => row.append(element(i ? tag : 'th', text)));
		return row;
	}

	function tipCosts(table, node) {
		table.append(tipRow(['', 'total', '', state.focus ? 'of zoomed' : '', 'self', ''], 'th', false));
		model.types.forEach(({ type, unit }, t) => {
			const total = tree.total[t][node], self = tree.self[t][node], whole = tree.total[t][0];

			table.append(tipRow([type, formatValue(total, unit), formatShare(total, whole),
				state.focus ? formatShare(total, tree.total[t][state.focus]) : '', formatValue(self, unit), formatShare(self, whole)],
			'td', t === state.type));
		});
	}

	function tipDifferences(table, node) {
		table.append(tipRow(['', 'base', 'new', 'difference', ''], 'th', false));
		model.types.forEach(({ type, unit }, t) => {
			const times = state.scaled ? equalScale(model, tree, t) : 1;

			for (const [what, of] of [[type, tree.total], [`${type}, self`, tree.self]]) {
				const before = of[baseOf(model, t)][node] * times, now = of[t][node];

				table.append(tipRow([what, formatValue(before, unit), formatValue(now, unit), formatDifference(now - before, unit),
					formatChange(before, now)], 'td', t === state.type && of === tree.total));
			}
		});
	}

	// What was judged of a function, as lines.
	function judgedTexts(frame) {
		if (!model.judged)
			return [];
		const { cum, self } = model.judged.get(frame) || {}, texts = [cum, self].filter((judged) => judged).map(({ text }) => text);

		return texts.length ? [...new Set(texts)] : ['not judged: it is too small'];
	}

	function fillTip(node) {
		const table = element('table', ''), frame = tree.frame[node], places = [];

		if (frame >= 0 && frame < model.names.length)
			places.push(...[model.places[model.object[frame]], model.places[model.file[frame]]].filter((place) => place));
		places.push(...judgedTexts(frame));
		(model.differs ? tipDifferences : tipCosts)(table, node);
		$('tip').replaceChildren(element('strong', name(node)), ...places.map((place) => element('p', place)), table);
	}

	// Marks the box [row, index], with a tooltip beside this point; null: none.
	function mark(at, point) {
		state.current = at;
		$('mark').hidden = $('tip').hidden = !at;
		if (!at)
			return;
		const box = rows[at[0]][at[1]], style = $('mark').style, tip = $('tip');

		style.left = `${box.x}px`;
		style.top = `${topOf(at[0])}px`;
		style.width = `${Math.max(box.width, 3)}px`;
		style.height = `${ROW - 1}px`;
		fillTip(box.node);
		const { width, height: high } = tip.getBoundingClientRect();

		tip.style.left = `${Math.max(4, Math.min(point.x + 14, innerWidth - width - 8))}px`;
		tip.style.top = `${point.y + 18 + high < innerHeight ? point.y + 18 : Math.max(4, point.y - high - 12)}px`;
	}

	function hit(event) {
		const frame = graph.getBoundingClientRect(), y = event.clientY - frame.top + graph.scrollTop;
		const row = Math.floor((state.up ? height() - y : y) / ROW);
		const index = rows[row] ? boxAt(rows[row], event.clientX - frame.left) : -1;

		return index < 0 ? null : [row, index];
	}

	// As an arrow key has moved to it.
	function moveTo(at) {
		const top = topOf(at[0]), box = rows[at[0]][at[1]];

		graph.scrollTop = Math.min(Math.max(graph.scrollTop, top + 2 * ROW - graph.clientHeight), Math.max(top - ROW, 0));
		const frame = graph.getBoundingClientRect();

		mark(at, { x: frame.left + box.x + Math.min(box.width / 2, 120), y: frame.top + top - graph.scrollTop });
		say(box.node);
	}

	// What the state is, or what a node is, in the line below.
	function say(node = state.focus) {
		const total = tree.total[state.type], share = `${value(total[node])}, ${formatShare(total[node], total[0])}`;
		const text = node ? `${node === state.focus ? 'Zoomed: ' : ''}${name(node)}: ${share}` : `All: ${value(total[0])}`;

		$('status').textContent = compared(model.differs && base(node), total[node], text);
	}

	// ---- Table ----

	function costCells(frame, whole) {
		return [element('td', value(cost.flat[frame])), element('td', formatShare(cost.flat[frame], whole), 'share'),
			element('td', value(cost.cum[frame])), element('td', formatShare(cost.cum[frame], whole), 'share')];
	}

	// Of a function that was judged only what is certain has a colour.
	function differenceCells(frame) {
		const before = cost.base[frame], now = cost.now[frame], { unit } = model.types[state.type];
		const sign = model.judged ? judgedOf(model, frame, state.measure === 'flat').sign : Math.sign(cost.difference[frame]);
		const colour = sign ? (sign > 0 ? 'more' : 'less') : '';

		return [element('td', value(before)), element('td', value(now)), element('td', formatDifference(cost.difference[frame], unit), colour),
			element('td', formatChange(before, now), colour || 'share')];
	}

	function tableRow(frame, whole) {
		const row = element('tr', ''), function_ = element('td', model.names[frame], 'name');
		const object = model.places[model.object[frame]], bar = model.differs ? cost.now[frame] : cost.cum[frame];

		row.tabIndex = 0;
		row.dataset.frame = frame;
		function_.title = [model.names[frame], object, model.places[model.file[frame]], ...judgedTexts(frame)].filter((s) => s).join('\n');
		if (!model.differs)
			function_.append(element('span', object.replace(/.*\/(?=.)/, '')));
		function_.style.setProperty('--share', whole ? Math.max(0, Math.min(100, (bar / whole) * 100)) : 0);
		row.append(...(model.differs ? differenceCells(frame) : costCells(frame, whole)), function_);
		return row;
	}

	function showTable() {
		const found = tableRows(model, cost, { by: state.by, reverse: state.reverse, match: state.found && state.found.match });
		const whole = tree.total[state.type][0];

		$('rows').replaceChildren(...found.slice(0, state.shown).map((frame) => tableRow(frame, whole)));
		$('more').hidden = found.length <= state.shown;
		$('more').textContent = `${formatCount(found.length - state.shown)} more`;
		for (const button of document.querySelectorAll('th button'))
			button.parentNode.setAttribute('aria-sort', button.dataset.by !== state.by ? 'none' :
				(state.by === 'name') !== state.reverse ? 'ascending' : 'descending');
	}

	// ---- From the state to what is seen ----

	function showFound() {
		const { found } = state, total = tree.total[state.type][0], text = $('found');

		text.className = '';
		text.textContent = '';
		if (found) {
			const sum = matchedTotal(tree, found.match, state.type);
			const before = model.differs && matchedTotal(tree, found.match, baseOf(model, state.type)) * scale;

			text.textContent = compared(before, sum, `${formatShare(sum, total)}, ${value(sum)}`);
			text.title = `in ${formatCount(found.cnt)} functions`;
		}
		requestDraw();
	}

	function find() {
		const pattern = $('pattern').value, found = pattern ? search(model, pattern) : null;

		state.found = found && found.match ? found : null;
		state.shown = ROWS_AT_ONCE;
		showFound();
		showTable();
		if (found && found.error) {
			$('found').className = 'bad';
			$('found').textContent = 'no regular expression';
			$('found').title = found.error;
		}
	}

	// After other samples or another order of them.
	function rebuild() {
		samples = selectSamples(model, state.key, state.value);
		tree = buildTree(model, samples, state);
		state.focus = 0;
		colours.clear();
		drawLegend();
		recount();
		graph.scrollTop = state.up ? height() : 0;
	}

	// After another value type, or another scale of the base.
	function recount() {
		scale = model.differs && state.scaled ? equalScale(model, tree, state.type) : 1;
		$('warning').hidden = !model.warning || state.scaled;
		cost = model.differs ? differences(model, samples, state.type, state.measure, scale) : costs(model, samples, state.type);
		arrange();
		showFound();
		showTable();
		say();
	}

	function reset() {
		$('pattern').value = '';
		find();
		zoom(0);
	}

	// ---- Controls ----

	function option(text, optionValue) {
		const o = element('option', text);

		o.value = optionValue;
		return o;
	}

	// Those of the label, with what they have of the value type that is shown. The chosen one stays chosen, if it is one of them.
	function fillValues() {
		const everything = selectSamples(model, -1), whole = everything.reduce((sum, s) => sum + model.value[state.type][s], 0);
		const values = state.key < 0 ? [] : labelValues(model, everything, state.key, state.type);

		$('value').hidden = state.key < 0;
		$('value').replaceChildren(...values.map(({ value: v, sum }) =>
			option(`${model.values[state.key][v]}  (${formatShare(sum, whole)})`, v)));
		if (!values.some(({ value: v }) => v === state.value))
			state.value = values.length ? values[0].value : -1;
		$('value').value = state.value;
	}

	// What only a difference has.
	function fillSides() {
		const heads = [['base', 'Base', 'What it cost before'], ['now', 'New', 'What it costs now'], ['difference', 'Diff', 'New less base']];
		const cells = [...document.querySelectorAll('thead th')];

		$('sides').hidden = $('measured').hidden = false;
		$('scaling').hidden = !!model.judged;
		$('warning').textContent = model.warning || '';
		heads.forEach(([by, text, title], i) => {
			const button = element('button', text);

			Object.assign(button, { type: 'button', title });
			button.dataset.by = by;
			cells[i].replaceChildren(button);
			cells[i].setAttribute('aria-sort', 'none');
		});
	}

	function fillControls() {
		const comm = model.keys.indexOf('comm'), { time_ms: time, duration_ns: duration } = model;

		$('title').textContent = document.title = model.title;
		$('about').textContent = [
			time ? new Date(time).toISOString().replace('T', ' ').replace(/\.\d+Z/, ' UTC') : '',
			duration && !model.sides ? `over ${formatValue(duration, 'nanoseconds')}` : '',
			...(model.sides || []),
			`${formatCount(new Set(model.node).size)} stacks`,
		].filter((s) => s).join(' · ');
		$('about').title = model.comments.join('\n');
		$('type').append(...model.types.map(({ type }, t) => option(type, t)));
		$('type').value = state.type;
		for (const [id, text] of [['split', 'nothing'], ['key', 'all samples']])
			$(id).append(option(text, -1), ...model.keys.map((key, k) => option(key, k)));
		$('labels').hidden = !model.keys.length;
		// a machine's profile begins with its processes, as folded stacks do
		state.split = comm >= 0 && model.values[comm].length > 1 ? comm : -1;
		$('split').value = state.split;
	}

	function listen() {
		const changed = (id, change, then) => $(id).addEventListener('change', () => {
			change($(id));
			then();
		});

		changed('type', (e) => { state.type = +e.value; fillValues(); }, recount);
		changed('split', (e) => { state.split = +e.value; }, rebuild);
		changed('key', (e) => { Object.assign(state, { key: +e.value, value: -1 }); fillValues(); }, rebuild);
		changed('value', (e) => { state.value = +e.value; }, rebuild);
		changed('inverted', (e) => { state.inverted = e.checked; }, rebuild);
		changed('gone', (e) => { state.gone = e.checked; }, () => zoom(0));
		changed('scaled', (e) => { state.scaled = e.checked; }, recount);
		changed('measure', (e) => { state.measure = e.value; }, recount);
		changed('up', (e) => { state.up = e.checked; }, () => { arrange(); graph.scrollTop = state.up ? height() : 0; });
		$('controls').addEventListener('submit', (event) => event.preventDefault());
		$('pattern').addEventListener('input', find);
		$('reset').addEventListener('click', reset);
		$('more').addEventListener('click', () => { state.shown += 5 * ROWS_AT_ONCE; showTable(); });
		document.querySelector('thead').addEventListener('click', ({ target }) => {
			if (target.dataset.by) {
				state.reverse = state.by === target.dataset.by && !state.reverse;
				state.by = target.dataset.by;
				showTable();
			}
		});
		const pick = ({ target }) => {
			const row = target.closest('tr');

			if (row) {
				$('pattern').value = exactly(model.names[row.dataset.frame]);
				find();
			}
		};

		$('rows').addEventListener('click', pick);
		$('rows').addEventListener('keydown', (event) => { if (event.key === 'Enter') pick(event); });
		graph.addEventListener('mousemove', (event) => mark(hit(event), { x: event.clientX, y: event.clientY }));
		graph.addEventListener('mouseleave', () => mark(null));
		graph.addEventListener('click', (event) => {
			const at = hit(event);

			if (at)
				zoom(rows[at[0]][at[1]].node);
		});
		graph.addEventListener('scroll', requestDraw);
		new ResizeObserver(arrange).observe(graph);
		dark.addEventListener('change', () => { colours.clear(); drawLegend(); requestDraw(); });
		for (const [event, printing] of [['beforeprint', true], ['afterprint', false]])
			addEventListener(event, () => {
				state.printing = printing;
				colours.clear();
				drawLegend();
				draw();
			});
	}

	function onKey(event) {
		const where = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: state.up ? 'in' : 'out', ArrowDown: state.up ? 'out' : 'in' }[event.key];
		const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== 'checkbox';

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key === 'Escape') {
			if (typing)
				graph.focus();
			reset();
		} else if (typing || event.target.closest('#side')) {
			if (event.key !== 'Enter' || event.target !== $('pattern'))
				return;
			graph.focus();
		} else if (event.key === '/') {
			$('pattern').focus();
			$('pattern').select();
		} else if (where) {
			const focus = rows.findIndex((row) => row[0].node === state.focus);

			graph.focus();
			moveTo(state.current ? neighbour(rows, state.current, where) : [focus, 0]);
		} else if (event.key === 'Enter' && state.current && event.target === graph) {
			zoom(rows[state.current[0]][state.current[1]].node);
			moveTo([rows.findIndex((row) => row[0].node === state.focus), 0]);
		} else {
			return;
		}
		event.preventDefault();
	}

	fillControls();
	if (model.differs)
		fillSides();
	listen();
	document.addEventListener('keydown', onKey);
	rebuild();
}

start();
