/** Modules, whole or not at all (05 §1, 06 §1, 02 §14). */
import { hasCapability, type MethodDefinition, methods } from '@posthouse/protocol';
import { assertConforms } from '../assert.ts';
import { checksOf } from '../check.ts';

const modules = checksOf('module');

modules.check(
  'whole',
  { source: '05 §1, 06 §1', title: 'has every method of what it declares, and none of what not' },
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
      assertConforms(unknown !== declared, `${name} is known where it is declared, not ${code}`);
      assertConforms(!answer.ok, `${name} is not served without a session`);
    }
  },
);

export const moduleChecks = modules.list;
