/** A relay serves all methods of a declared module, and none of others (05 §1, 06 §1, 02 §14). */
import { hasCapability, type MethodDefinition, methods } from '@posthouse/protocol';
import { assertConforms } from '../assert.ts';
import { checksOf } from '../check.ts';

const modules = checksOf('module');

modules.check(
  'whole',
  {
    source: '05 §1, 06 §1',
    title: 'serves every method of the declared modules, and none of others',
  },
  async (context) => {
    const anonymous = await context.anonymous();
    const definitions: readonly MethodDefinition[] = Object.values(methods);
    for (const { name, capability, http } of definitions) {
      const elsewhere = context.transport === 'https' && http.length === 0;
      if (capability === undefined || elsewhere) continue;
      const answer = await anonymous.call(name, {}, http[0]);
      const code = answer.ok ? 'success' : answer.code;
      const unknown = code === 'method_not_found';
      const declared = hasCapability(context.descriptor, capability);
      assertConforms(
        unknown !== declared,
        `${name} is ${declared ? 'known' : 'method_not_found'}, not ${code}`,
      );
      assertConforms(!answer.ok, `${name} is not served without a session`);
    }
  },
);

export const moduleChecks = modules.list;
