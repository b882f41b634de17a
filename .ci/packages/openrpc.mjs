/**
 * Validates an OpenRPC document, the parameter, by the meta-schema of its specification. Alone it names
 * another schema for JSON Schemas, which has to be given too.
 */
import { readFileSync } from 'node:fs';
import jsonSchema from '@json-schema-tools/meta-schema';
import openRpc from '@open-rpc/meta-schema';
import { Ajv } from 'ajv';

const $schema = 'http://json-schema.org/draft-07/schema#';
const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
// It is named with a slash at its end and without.
for (const end of ['', '/']) {
  ajv.addSchema({ ...jsonSchema.default, $schema, $id: `https://meta.json-schema.tools${end}` });
}
const validate = ajv.compile({ ...openRpc.default, $schema });
if (!validate(JSON.parse(readFileSync(process.argv[2], 'utf8')))) {
  console.error(validate.errors);
  process.exitCode = 1;
}
