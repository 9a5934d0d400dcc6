/** A completion script for zsh, to be read by `source`, or kept as `_meterline` in a directory of `fpath`. */
import { allNodes, type CommandNode, type Completed, type OptionNode } from './command-tree.js';

export function zshScript(program: CommandNode): string {
  const { name } = program;
  const functions = allNodes(program).map((node) =>
    node.commands.length > 0 ? groupFunction(node) : leafFunction(node),
  );
  return `#compdef ${name}
# Completion of ${name} in zsh; made by "${name} completion zsh".
${functions.join('\n')}
if [[ $funcstack[1] == _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}

function groupFunction({ path, options, commands }: CommandNode): string {
  const described = commands.map((each) => quoted(`${each.name}:${each.summary}`));
  const calls = commands.map((each) => `    ${each.name}) ${functionName(each)} ;;`);
  return `${functionName({ path })}() {
  local curcontext="$curcontext" state line
  local -a commands=(
    ${described.join('\n    ')}
  )
  _arguments -C ${options.map(optionSpec).join(' ')} '1: :->command' '*:: :->rest'
  if [[ $state == command ]]; then _describe command commands; return; fi
  case $line[1] in
${calls.join('\n')}
  esac
}`;
}

function leafFunction({ path, options, argument }: CommandNode): string {
  const specs = options.map(optionSpec);
  if (argument !== undefined) specs.push(`'*:argument:${actionOf(argument)}'`);
  return `${functionName({ path })}() {
  _arguments \\
    ${specs.join(' \\\n    ')}
}`;
}

/** `'*--filter[a filter]:value:(a b)'`: many may be given several times. */
function optionSpec({ name, description, takes, value }: OptionNode): string {
  const text = `${takes === 'a value' ? '*' : ''}${name}[${description.replace(/[[\]\\]/g, '\\$&')}]`;
  if (takes === 'nothing') return quoted(text);
  return quoted(`${text}${takes === 'a value' ? ':' : '::'}value:${actionOf(value)}`);
}

/** A blank: something that only the person knows. */
function actionOf(value: Completed | undefined): string {
  if (value === undefined) return ' ';
  return value === 'file' ? '_files' : `(${value.join(' ')})`;
}

function functionName({ path }: Pick<CommandNode, 'path'>): string {
  return `_${path.replace(/[ -]/g, '_')}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
