import { fileURLToPath } from 'node:url';

/** The build of the web page. */
export const PAGE_FOLDER = fileURLToPath(new URL('../../packages/dashboard/dist/page', import.meta.url));
