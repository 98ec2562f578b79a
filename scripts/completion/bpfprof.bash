# SPDX-License-Identifier: BSD-2-Clause
# bash completion of bpfprof. scripts/check-docs compares the table with what the program prints under --help.

# of each option: short and long form, what its argument is called, and its default; '.' for none
_bpfprof_options='
-p --pid LIST .
. --follow . .
-a --all . .
-t --tid LIST .
. --cgroup PATH .
. --comm GLOB .
-U --user . .
-K --kernel . .
-P --profile LIST cpu,heap,block,threadcreate
-d --duration TIME .
-F --frequency HZ 99
. --event NAME cpu-clock
. --heap-rate BYTES 512k
. --heap-budget PERCENT 1
. --min-age TIME .
. --min-wait TIME 1us
. --wait-rate TIME .
. --wait-budget PERCENT 1
. --debuginfod . .
. --debuginfod-wait TIME 10s
. --debuginfod-cache DIR /var/cache/bpfprof
-o --output PATH bpfprof.TARGET.KIND.EXT
-f --format NAME pprof
. --window TIME .
. --keep N .
. --stats FILE .
. --strict . .
. --ready-fd N .
. --no-labels . .
-q --quiet . .
-v --verbose . .
. --version . .
-h --help . .
'

# the same of bpfprof agent
_bpfprof_agent_options='
. --config FILE .
. --check-config FILE .
. --dump TIME .
-P --profile LIST cpu,offcpu,threadcreate
. --window TIME 10s
-d --duration TIME .
. --own-samples . .
-F --frequency HZ 19
. --event NAME cpu-clock
. --heap-rate BYTES 512k
. --heap-budget PERCENT 1
. --min-age TIME .
. --min-wait TIME 1us
. --wait-rate TIME .
. --wait-budget PERCENT 0.25
. --max-cpu PERCENT .
. --max-memory BYTES .
. --spool DIR /var/lib/bpfprof
. --spool-size BYTES 1G
. --listen ADDRESS 127.0.0.1:6061
. --ready-fd N .
. --no-labels . .
-q --quiet . .
-v --verbose . .
. --version . .
-h --help . .
'

# of bpfprof view
_bpfprof_view_options='
. --base FILE .
. --value NAME .
. --focus REGEX .
-f --format NAME text
. --tree . .
. --limit N .
. --min-share PERCENT 0.5
-o --output PATH .
-q --quiet . .
-v --verbose . .
. --version . .
-h --help . .
'

# of bpfprof merge
_bpfprof_merge_options='
-o --output PATH .
-q --quiet . .
-v --verbose . .
. --version . .
-h --help . .
'

# of bpfprof diff
_bpfprof_diff_options='
. --fail-on CHANGE cpu:+5%
. --alpha P 0.05
. --min-effect PERCENT 1
. --strict . .
. --min-share PERCENT 0.5
. --seed N .
. --cross-machine . .
-f --format NAME text
. --source-root DIR .
-o --output PATH -
-q --quiet . .
-v --verbose . .
. --version . .
-h --help . .
'

# of bpfprof bench
_bpfprof_bench_options='
. --against COMMAND .
. --aa . .
. --repeat K 10
. --max-repeat K .
. --builds N .
. --append DIR .
. --warmup N 1
. --prepare COMMAND .
. --timeout TIME 10m
. --ops N .
. --ops-regex REGEX .
. --ops-probe PROBE .
-P --profile LIST cpu
-F --frequency HZ 997
. --event NAME cpu-clock
. --heap-rate BYTES 512k
-o --output DIR .
. --fail-on CHANGE cpu:+5%
. --alpha P 0.05
. --min-effect PERCENT 1
. --min-share PERCENT 0.5
. --strict . .
. --source-root DIR .
. --seed N .
-f --format NAME text
-q --quiet . .
-v --verbose . .
. --version . .
-h --help . .
'

# of bpfprof serve
_bpfprof_serve_options='
-p --pid PID .
-a --all . .
. --always LIST .
-F --frequency HZ 99
. --heap-rate BYTES 512k
. --heap-budget PERCENT 5
. --wait-budget PERCENT 1
. --listen ADDRESS 127.0.0.1:6060
. --allow-remote . .
. --token-file FILE .
. --ready-fd N .
-q --quiet . .
-v --verbose . .
. --version . .
-h --help . .
'

# of bpfprof check
_bpfprof_check_options='
-q --quiet . .
-v --verbose . .
. --version . .
-h --help . .
'

# of bpfprof list
_bpfprof_list_options='
-p --pid PID .
-q --quiet . .
-v --verbose . .
. --version . .
-h --help . .
'

# the kinds that this program has
_bpfprof_kinds() {
	PATH=$PATH:/usr/local/sbin:/usr/sbin "${COMP_WORDS[0]}" list 2>/dev/null | sed -n 's/^\([a-z]\{1,\}\).*/\1/p'
}

# _bpfprof_list WORDS: completes the last one of a list that commas separate
_bpfprof_list() {
	local head=
	[[ $cur == *,* ]] && head=${cur%,*},
	mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "${cur##*,}")
}

_bpfprof_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

# _bpfprof_argument OPTION NAME DEFAULT: completes the argument of an option
_bpfprof_argument() {
	local formats='pprof folded text flamegraph debug1 debug2 legacy'
	case $1 in
	--profile) _bpfprof_list "$(_bpfprof_kinds)" ;;
	--always) _bpfprof_list 'heap block mutex offcpu threadcreate custom fds' ;;
	--pid) _bpfprof_list "$(cd /proc && echo [0-9]*)" ;;
	--format)
		[ "$command" = view ] && formats='text html'
		[[ $command == @(diff|bench) ]] && formats='text markdown json junit github pprof folded flamegraph'
		mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$cur")
		;;
	--event) mapfile -t COMPREPLY < <(compgen -W 'cpu-clock cycles' -- "$cur") ;;
	*)
		case $2 in
		PATH | FILE | DIR) _bpfprof_files ;;
		COMMAND) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
		*) [ "$3" = . ] || mapfile -t COMPREPLY < <(compgen -W "$3" -- "$cur") ;;
		esac
		;;
	esac
}

_bpfprof() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i short long arg default words='' options=$_bpfprof_options command=''
	local commands='record agent serve view merge diff bench check list'

	COMPREPLY=()
	[ "$COMP_CWORD" -gt 1 ] && command=${COMP_WORDS[1]}
	# but for diff, which has files on both sides of it
	for ((i = 1; i < COMP_CWORD; i++)); do
		[ "$command" = diff ] && break
		[ "${COMP_WORDS[i]}" = -- ] || continue
		# what follows is another command line
		if declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
		elif [ $((i + 1)) = "$COMP_CWORD" ]; then
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		else
			compopt -o default 2>/dev/null
		fi
		return
	done
	# readline parts words at '=', too
	if [ "$cur" = = ]; then
		cur=''
	elif [ "$prev" = = ]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	case $command in
	help)
		[ "$COMP_CWORD" = 2 ] && mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur")
		return
		;;
	agent) options=$_bpfprof_agent_options ;;
	view) options=$_bpfprof_view_options ;;
	merge) options=$_bpfprof_merge_options ;;
	diff) options=$_bpfprof_diff_options ;;
	bench) options=$_bpfprof_bench_options ;;
	serve) options=$_bpfprof_serve_options ;;
	check) options=$_bpfprof_check_options ;;
	list) options=$_bpfprof_list_options ;;
	esac
	while read -r short long arg default; do
		[ -n "$long" ] || continue
		if [ "$arg" != . ] && [ "$prev" = "$short" -o "$prev" = "$long" ]; then
			_bpfprof_argument "$long" "$arg" "$default"
			return
		fi
		words+=" $long"
		[ "$short" = . ] || words+=" $short"
	done <<<"$options"
	if [[ $command == @(view|merge|diff) && $cur != -* ]]; then
		_bpfprof_files
		return
	fi
	[[ $options == "$_bpfprof_options" || $command == bench ]] && words+=' --'
	[ "$COMP_CWORD" = 1 ] && words+=" $commands help"
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _bpfprof bpfprof
