/**
 * Limits which files this process may open, whatever its user may: Linux's Landlock.
 * Source: landlock(7), and include/uapi/linux/landlock.h of Linux.
 */
import { closeSync, openSync, statSync } from 'node:fs';
import { close, DataType, load, open } from 'ffi-rs';

/** System calls; the numbers are the same on every architecture. */
const CREATE_RULESET = 444;
const ADD_RULE = 445;
const RESTRICT_SELF = 446;
const GET_VERSION = 1;
const PATH_BENEATH = 1;
const PR_SET_NO_NEW_PRIVS = 38;
/** Node has no constant for it. */
const O_PATH = 0x200000;

/** The first version that lets a file be moved to another directory, as ClickHouse does. It came with Linux 5.19. */
const OLDEST_VERSION = 2;
/** All that version 2 can refuse. */
const EVERYTHING = (1n << 14n) - 1n;
const EXECUTE = 1n << 0n;
const READ_FILE = 1n << 2n;
const READ_DIRECTORY = 1n << 3n;
/** Those that make sense for a file: execute, write, read. */
const OF_FILES = 0b111n;

/** Whether {@link limitFileAccess} works on this system. */
export function canLimitFileAccess() {
  if (process.platform !== 'linux') return false;
  try {
    return withLibc(() => call('syscall', [CREATE_RULESET, 0, 0, GET_VERSION])) >= OLDEST_VERSION;
  } catch {
    return false;
  }
}

/**
 * Leaves the calling thread, and those that it starts from here on, nothing but these paths, where the system can.
 *
 * @param {{ readable: string[], writable: string[] }} paths files, and directories with all that is in them
 */
export function limitFileAccess({ readable, writable }) {
  if (!canLimitFileAccess()) return;
  withLibc(() => {
    const handled = Buffer.alloc(8);
    handled.writeBigUInt64LE(EVERYTHING);
    const ruleset = call('syscall', [CREATE_RULESET, handled, handled.length, 0]);
    for (const path of readable) allow(ruleset, path, READ_FILE | READ_DIRECTORY);
    for (const path of writable) allow(ruleset, path, EVERYTHING & ~EXECUTE);
    call('prctl', [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0]);
    call('syscall', [RESTRICT_SELF, ruleset, 0]);
    closeSync(ruleset);
  });
}

function withLibc(work) {
  open({ library: 'libc', path: 'libc.so.6' });
  try {
    return work();
  } finally {
    close('libc');
  }
}

function allow(ruleset, path, rights) {
  // Stays open: a directory of /proc that nobody holds may be another one the next time.
  const target = openSync(path, O_PATH);
  // struct landlock_path_beneath_attr, packed.
  const rule = Buffer.alloc(12);
  rule.writeBigUInt64LE(statSync(path).isDirectory() ? rights : rights & OF_FILES);
  rule.writeInt32LE(target, 8);
  call('syscall', [ADD_RULE, ruleset, PATH_BENEATH, rule, 0]);
}

/** @param {(number | Buffer)[]} paramsValue */
function call(funcName, paramsValue) {
  const paramsType = paramsValue.map((value) => (Buffer.isBuffer(value) ? DataType.U8Array : DataType.I64));
  const result = load({ library: 'libc', funcName, retType: DataType.I64, paramsType, paramsValue });
  if (result < 0) throw new Error(`${funcName} ${paramsValue[0]} failed`);
  return result;
}
