import { ConfigError } from '../../config/index.ts';
import { checkMemory, processMemory } from '../../memory.ts';
import { type Check, failed, ok } from './check.ts';

/** Whether a relay would start with the configuration. */
export const configuration: Check = {
  name: 'configuration',
  scope: 'local',
  cure: 'correct the settings that are named; `posthouse config explain` lists all of them',
  async find(relay) {
    try {
      const { config, sources } = relay.loaded;
      const problems = checkMemory(config.limits, processMemory());
      if (problems.length > 0) return failed(problems.join('; '), this.cure);
      const set = [...sources.values()].filter((source) => !source.startsWith('default'));
      const from = [...new Set(set)].filter((source) => source.startsWith('file'));
      return ok(`valid, ${set.length} settings${from.map((source) => ` of ${source}`).join('')}`);
    } catch (error) {
      if (error instanceof ConfigError) return failed(error.problems.join('; '), this.cure);
      throw error;
    }
  },
};
