/** What the page cannot know from its own address: see `pageSettingsRoute` of packages/api. */
import * as z from 'zod/mini';

const pageSettings = z.object({ collectorUrl: z.optional(z.string()), frameAncestors: z.array(z.string()) });

/** @throws when the service does not answer */
export async function readPageSettings(signal?: AbortSignal): Promise<z.output<typeof pageSettings>> {
  const answer = await fetch('/page-settings.json', signal ? { signal } : {});
  return pageSettings.parse(await answer.json());
}
