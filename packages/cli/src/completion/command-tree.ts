/** The command line as a tree of names, read from commander: what there is to complete. */
import type { Argument, Command, Option } from 'commander';

export interface CommandNode {
  readonly name: string;
  /** From the program on: `meterline keys create`. */
  readonly path: string;
  readonly summary: string;
  readonly options: readonly OptionNode[];
  readonly commands: readonly CommandNode[];
  /** What the arguments are; undefined: nothing that can be completed. */
  readonly argument: Completed | undefined;
}

export interface OptionNode {
  /** `--json`. Options without a long name do not occur. */
  readonly name: string;
  readonly description: string;
  /** Whether a value follows, or may follow. */
  readonly takes: 'nothing' | 'a value' | 'perhaps a value';
  readonly value: Completed | undefined;
}

/** A file of the disk, or one of these words. */
export type Completed = 'file' | readonly string[];

/** @param program with every command in it */
export function commandTree(program: Command): CommandNode {
  return nodeOf(program, '');
}

function nodeOf(command: Command, parents: string): CommandNode {
  const name = command.name();
  const path = `${parents} ${name}`.trimStart();
  const help = command.createHelp();
  return {
    name,
    path,
    summary: firstSentence(help.subcommandDescription(command)),
    options: help.visibleOptions(command).flatMap((option) => optionNode(option)),
    commands: help.visibleCommands(command).map((each) => nodeOf(each, path)),
    argument: command.registeredArguments.map(completedArgument).find((each) => each !== undefined),
  };
}

function optionNode(option: Option): OptionNode[] {
  const { long, description, argChoices, required, optional, flags } = option;
  if (!long) return [];
  const value = argChoices ?? (FILE.test(flags) ? 'file' : undefined);
  const takes = required ? 'a value' : optional ? 'perhaps a value' : 'nothing';
  return [{ name: long, description: firstSentence(description), takes, value }];
}

/** The name of a placeholder says what stands there. */
const FILE = /<(?:file|path)>/;

function completedArgument(argument: Argument): Completed | undefined {
  return argument.argChoices ?? (FILE.test(`<${argument.name()}>`) ? 'file' : undefined);
}

/** A shell has one line for it. */
function firstSentence(text: string): string {
  const [sentence = ''] = text.replace(/ \([^)]*\)/g, '').split(/[\n:;]|\.(?:\s|$)/, 1);
  return sentence;
}

/** The node and all below it, each before its own. */
export function allNodes(node: CommandNode): CommandNode[] {
  return [node, ...node.commands.flatMap(allNodes)];
}
