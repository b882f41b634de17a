import type { LoadedConfig } from './load.ts';
import { redact } from './redact.ts';
import { settings } from './settings.ts';

/** Lists every setting with its value, the value's source, and its meaning. */
export function explainConfig({ config, sources }: LoadedConfig): string {
  return settings
    .map(({ path, variable, meaning }) => {
      const value = path
        .split('.')
        .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], config);
      const source = sources.get(path) ?? 'not set';
      return `${path} = ${redact(value)}  (${source})\n    ${meaning} ${variable}\n`;
    })
    .join('');
}
