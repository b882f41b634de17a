/** Writes `packages/relay/config.schema.json`: what editors check a configuration file with. */
import { writeFileSync } from 'node:fs';
import { configSchemaText } from '../packages/relay/src/config/json-schema.ts';

writeFileSync(new URL('../packages/relay/config.schema.json', import.meta.url), configSchemaText());
