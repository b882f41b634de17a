import { NodeHttp, readAuthority } from '../../federation/index.ts';
import { type Check, skipped } from './check.ts';
import { clockFinding, differenceOf } from './clock-of-others.ts';

/** Whether the clock agrees with those of the chain's nodes that `registry` names, by their median. */
export const clockOfNodes: Check = {
  name: 'clock of nodes',
  scope: 'network',
  needs: ['configuration'],
  cure: 'correct the setting `federation.ca`',
  async find({ config, clock, limits }, signal) {
    const { registry } = config;
    if (typeof registry === 'string') return skipped('the registry is a file: it has no nodes');
    using http = new NodeHttp({ clock, limits, authority: await readAuthority(config) });
    const asked = registry.nodes.map((node) => differenceOf(() => http.fetchDate(node, signal)));
    const differences = (await Promise.all(asked)).filter((one) => one !== undefined);
    if (differences.length === 0) return skipped('no node answered with a date');
    return clockFinding(differences, limits.futureTolerance, 'node');
  },
};
