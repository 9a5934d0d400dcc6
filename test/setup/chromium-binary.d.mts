export interface ChromiumOptions {
  /** Whose PATH and CHROMIUM_PATH to use, and what to run a package manager with. Default: this process's environment. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Told, in one line, what changes the machine. Default: silence. */
  say?: ((line: string) => void) | undefined;
}

/**
 * The absolute path of a Chromium or Chrome: CHROMIUM_PATH, one on PATH or in a usual place, or else one installed now.
 *
 * @throws Error that says, in one line, what to do
 */
export function ensureChromium(options?: ChromiumOptions): Promise<string>;
