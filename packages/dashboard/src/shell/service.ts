/** Finds the service that serves this page, and reads its settings. */
import * as z from 'zod/mini';

/** Returns the address of the service without a trailing slash. The address has a path if a proxy serves the service under a path. */
export const serviceAddress = () => new URL('.', document.baseURI).href.slice(0, -1);

const pageSettings = z.object({ collectorUrl: z.optional(z.string()), frameAncestors: z.array(z.string()) });

/** Reads the settings from `pageSettingsRoute` of packages/api. @throws if the service does not respond */
export async function readPageSettings(signal?: AbortSignal): Promise<z.output<typeof pageSettings>> {
  const response = await fetch(`${serviceAddress()}/page-settings.json`, signal ? { signal } : {});
  return pageSettings.parse(await response.json());
}
