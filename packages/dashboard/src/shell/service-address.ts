/** The address of the service, without a slash at its end. A proxy may serve it under a path of its own. */
export const serviceAddress = () => new URL('.', document.baseURI).href.slice(0, -1);
