export interface ChromiumOptions {
  /** Provides PATH and CHROMIUM_PATH, and is passed to a package manager. Default: this process's environment. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Called with one line before the machine is changed. Default: no output. */
  say?: ((line: string) => void) | undefined;
}

/**
 * The absolute path of a Chromium or Chrome: from CHROMIUM_PATH, on PATH, in a usual place, or else installed now.
 *
 * @throws Error whose message says in one line what to do
 */
export function ensureChromium(options?: ChromiumOptions): Promise<string>;
