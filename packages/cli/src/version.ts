import { readFileSync } from 'node:fs';

/** The version of this package, which stands in its manifest and nowhere else. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new TypeError('package.json has no version');
}
