import NodeEnvironment from 'jest-environment-node';

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
