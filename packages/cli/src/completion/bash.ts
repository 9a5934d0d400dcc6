/** A completion script for bash from 3.2 on, which needs nothing else installed. */
import { allNodes, type CommandNode, type Completed, type OptionNode } from './command-tree.js';

/**
 * The words before the cursor are followed down the tree of commands. Then the word before the cursor says whether the value of
 * an option is wanted. Bash cuts words at an equals sign: `--resolution=daily` is three of them.
 */
export function bashScript(program: CommandNode): string {
  const { name } = program;
  const nodes = allNodes(program);
  const commands = nodes.slice(1).map(({ path }) => `'${path}'`);
  const words = nodes.map(({ path, options, commands: below, argument }) => {
    const offered = [...below.map((each) => each.name), ...wordsOf(argument), ...options.map((each) => each.name)];
    return `    '${path}') words='${offered.join(' ')}'${argument === 'file' ? ' files=yes' : ''} ;;`;
  });
  return `# Completion of ${name} in bash; made by "${name} completion bash".
_${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}"
  if [[ $current == = ]]; then
    current=
    [[ $before == -* ]] || return
  elif [[ $before == = ]]; then
    before="\${COMP_WORDS[COMP_CWORD - 2]}"
    [[ $before == -* ]] || return
  fi
  local at='${name}' words= files= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    case "$at $word" in
      ${commands.join(' | ')}) at="$at $word" ;;
    esac
  done
  case "$at" in
${words.join('\n')}
  esac
  if [[ $current != -* ]]; then
    case "$at $before" in
${valueCases(nodes).join('\n')}
    esac
  fi
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(
    compgen -W "$words" -- "$current"
    [[ -z $files ]] || compgen -f -- "$current"
  )
  if [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o filenames -F _${name} ${name}
`;
}

/** A case for each kind of value, with all options that take it. An option of many commands is written once, if it may. */
function valueCases(nodes: readonly CommandNode[]): string[] {
  const taking = nodes.flatMap(({ path, options }) =>
    options.map((option) => ({ path, option, action: actionOf(option) })),
  );
  const patterns = new Map<string, Set<string>>();
  for (const { path, option, action } of taking) {
    if (action === undefined) continue;
    const isSame = taking.every((other) => other.option.name !== option.name || other.action === action);
    const pattern = isSame ? `*' ${option.name}'` : `'${path} ${option.name}'`;
    patterns.set(action, (patterns.get(action) ?? new Set()).add(pattern));
  }
  return [...patterns].map(([action, options]) => `      ${[...options].join(' | ')}) ${action} ;;`);
}

/** What is offered after an option; undefined: what would be offered without it. */
function actionOf({ takes, value }: OptionNode): string | undefined {
  if (takes === 'nothing') return undefined;
  if (takes === 'perhaps a value') return value && `words="$words ${wordsOf(value).join(' ')}"`;
  return value === 'file' ? 'words= files=yes' : `words='${wordsOf(value).join(' ')}' files=`;
}

function wordsOf(value: Completed | undefined): readonly string[] {
  return value === undefined || value === 'file' ? [] : value;
}
