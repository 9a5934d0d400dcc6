import NodeEnvironment from 'jest-environment-node';

/** Jest's own, but a worker whose parent has died ends: the services that its tests have started would keep it alive. */
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
