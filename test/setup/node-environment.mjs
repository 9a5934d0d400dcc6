import NodeEnvironment from 'jest-environment-node';

// To give back a heap of a gigabyte takes Node longer than Jest waits for a worker that ends.
process.once('beforeExit', () => process.exit());

/** Jest's environment, but a worker ends when its parent dies; services that its tests started would keep it alive. */
export default class extends NodeEnvironment {
  async setup() {
    await super.setup();
    process.once('disconnect', endWithParent);
  }

  async teardown() {
    process.off('disconnect', endWithParent);
    await super.teardown();
  }
}

function endWithParent() {
  process.exit(1);
}
