/** A completion script for fish. */
import { allNodes, type CommandNode, type OptionNode } from './command-tree.js';

export function fishScript(program: CommandNode): string {
  const { name } = program;
  const nodes = allNodes(program);
  const paths = nodes.slice(1).map(({ path }) => quoted(path));
  return `# Completion of ${name} in fish; made by "${name} completion fish".
function __${name}_at --description 'Whether the words so far name this command'
    set -l at ${name}
    for word in (commandline -opc)[2..-1]
        if contains -- "$at $word" ${paths.join(' ')}
            set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
complete -c ${name} -f
${nodes.flatMap((node) => linesOf(name, node)).join('\n')}
`;
}

function linesOf(name: string, { path, options, commands, argument }: CommandNode): string[] {
  const start = `complete -c ${name} -n ${quoted(`__${name}_at ${path}`)}`;
  return [
    ...commands.map((each) => `${start} -a ${each.name} -d ${quoted(each.summary)}`),
    ...options.map((option) => `${start} ${optionFlags(option)} -d ${quoted(option.description)}`),
    ...(argument === undefined
      ? []
      : [argument === 'file' ? `${start} -F` : `${start} -a ${quoted(argument.join(' '))}`]),
  ];
}

/** A value that may be left out is given after an equals sign, so that the next word is not taken for it. */
function optionFlags({ name, takes, value }: OptionNode): string {
  const long = `-l ${name.slice(2)}`;
  if (takes === 'nothing') return long;
  const words = value === undefined || value === 'file' ? '' : ` -a ${quoted(value.join(' '))}`;
  if (takes === 'perhaps a value') return `${long}${words}`;
  return value === 'file' ? `${long} -r -F` : `${long} -x${words}`;
}

function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`;
}
