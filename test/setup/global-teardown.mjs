export default async function globalTeardown() {
  await globalThis.meterlineTestStack?.stop();
}
