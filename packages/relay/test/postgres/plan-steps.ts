/** What is wrong about a plan of PostgreSQL: steps that look at more rows than the statement is about. */

export interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Cond'?: string;
  readonly 'Index Name'?: string;
  readonly Plans?: readonly Plan[];
}

/** Steps of a plan that look at more rows than the statement is about. */
export function slowSteps(plan: Plan, isLimited = false): string[] {
  const { 'Node Type': type, 'Index Cond': condition, Plans: parts = [] } = plan;
  // With a LIMIT, reading the first rows of an index is fine.
  const isScan = /Scan$/.test(type) && !/^(?:Subquery|CTE|Values|Function|WorkTable) /.test(type);
  const isSlow =
    /^(?:Seq Scan|Hash Join|Merge Join)$/.test(type) ||
    // All there are have to be found before the first few are known.
    (type === 'Sort' && isLimited) ||
    (isScan && condition === undefined && !isLimited && type !== 'Bitmap Heap Scan');
  return [
    ...(isSlow ? [`${type} ${plan['Index Name'] ?? ''}`] : []),
    ...parts.flatMap((part) => slowSteps(part, isLimited || type === 'Limit')),
  ];
}
