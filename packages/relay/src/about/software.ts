import manifest from '#package.json' with { type: 'json' };
import type { RelayConfig } from '../config/index.ts';

/** Returns program and version as strangers are told them; `undefined` if the operator says neither. */
export function softwareOf({ version = false }: Partial<RelayConfig['about']>): string | undefined {
  return version ? `posthouse ${manifest.version}` : undefined;
}
