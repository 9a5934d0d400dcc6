/**
 * What this package uses of commander, which is CommonJS. Through `import`, Node first reads the names that it exports, with a parser
 * that takes as long to load as commander itself; `require` needs none.
 */
import { createRequire } from 'node:module';

const commander: typeof import('commander') = createRequire(import.meta.url)('commander');

export const { Argument, Command, CommanderError, InvalidArgumentError, Option } = commander;
export type Command = import('commander').Command;
export type Option = import('commander').Option;
