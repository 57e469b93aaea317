	.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
	.amdhsa_code_object_version 6
	.text
	.protected	_Z7collatzPii
	.globl	_Z7collatzPii
	.type	_Z7collatzPii,@function
_Z7collatzPii:
.Lfunc_begin0:
	.file	1 "examples" "collatz.cu"
	.loc	1 5 33 prologue_end
	s_load_dword s0, s[4:5], 0x1c
	.loc	1 5 20 is_stmt 0
	s_load_dword s1, s[4:5], 0x8
	.loc	1 5 33
	s_waitcnt lgkmcnt(0)
	s_and_b32 s0, s0, 0xffff
	.loc	1 5 22
	s_mul_i32 s6, s6, s0
	.loc	1 5 35
	v_add_u32_e32 v0, s6, v0
	.loc	1 6 9 is_stmt 1
	v_cmp_gt_i32_e32 vcc, s1, v0
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB0_10
	.loc	1 9 16
	v_cmp_ne_u32_e32 vcc, 0, v0
	v_mov_b32_e32 v4, 0
	.loc	1 9 3 is_stmt 0
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB0_9
	.loc	1 7 32 is_stmt 1
	v_add_u32_e32 v2, 1, v0
	.loc	1 7 30 is_stmt 0
	v_ashrrev_i32_e32 v3, 31, v2
	s_mov_b32 s8, 0
	s_mov_b64 s[2:3], 0
	s_branch .LBB0_4
.LBB0_3:
	.loc	1 0 30
	s_or_b64 exec, exec, s[6:7]
	.loc	1 14 5 is_stmt 1
	s_add_i32 s8, s8, 1
	.loc	1 9 16
	v_cmp_eq_u64_e32 vcc, 1, v[2:3]
	.loc	1 9 3 is_stmt 0
	s_or_b64 s[2:3], vcc, s[2:3]
	.loc	1 14 5 is_stmt 1
	v_mov_b32_e32 v4, s8
	.loc	1 9 3
	s_andn2_b64 exec, exec, s[2:3]
	s_cbranch_execz .LBB0_8
.LBB0_4:
	.loc	1 10 9
	v_and_b32_e32 v1, 1, v2
	v_cmp_eq_u32_e32 vcc, 1, v1
	s_and_saveexec_b64 s[6:7], vcc
	s_xor_b64 s[6:7], exec, s[6:7]
	.loc	1 11 25
	v_mad_u64_u32 v[4:5], s[10:11], v2, 3, 1
	v_mov_b32_e32 v2, v5
	v_mad_u64_u32 v[2:3], s[10:11], v3, 3, v[2:3]
	v_mov_b32_e32 v5, v2
	v_pk_mov_b32 v[2:3], v[4:5], v[4:5] op_sel:[0,1]
	.loc	1 0 25 is_stmt 0
	s_andn2_saveexec_b64 s[6:7], s[6:7]
	s_cbranch_execz .LBB0_3
	.loc	1 13 13 is_stmt 1
	v_lshrrev_b64 v[2:3], 1, v[2:3]
	s_branch .LBB0_3
.LBB0_8:
	.loc	1 0 13 is_stmt 0
	s_or_b64 exec, exec, s[2:3]
.LBB0_9:
	s_or_b64 exec, exec, s[0:1]
	.loc	1 5 20 is_stmt 1
	s_load_dwordx2 s[0:1], s[4:5], 0x0
	.loc	1 16 3
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshlrev_b64 v[0:1], 2, v[0:1]
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v2, s1
	v_add_co_u32_e32 v0, vcc, s0, v0
	v_addc_co_u32_e32 v1, vcc, v2, v1, vcc
	.loc	1 16 12 is_stmt 0
	global_store_dword v[0:1], v4, off
.LBB0_10:
	.loc	1 17 1 is_stmt 1
	s_endpgm
.Ltmp0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel _Z7collatzPii
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 272
		.amdhsa_user_sgpr_count 6
		.amdhsa_user_sgpr_private_segment_buffer 1
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_flat_scratch_init 0
		.amdhsa_user_sgpr_kernarg_preload_length 0
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_system_sgpr_private_segment_wavefront_offset 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 6
		.amdhsa_next_free_sgpr 12
		.amdhsa_accum_offset 8
		.amdhsa_reserve_vcc 1
		.amdhsa_reserve_flat_scratch 0
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
.Lfunc_end0:
	.size	_Z7collatzPii, .Lfunc_end0-_Z7collatzPii
	.text
	.text
	.protected	drywarp_entry
	.type	drywarp_entry,@object
	.data
	.globl	drywarp_entry
drywarp_entry:
	.quad	_Z7collatzPii
	.size	drywarp_entry, 8
	.type	__hip_cuid_257e652a16414cda,@object
	.section	.bss,"aw",@nobits
	.globl	__hip_cuid_257e652a16414cda
__hip_cuid_257e652a16414cda:
	.size	__hip_cuid_257e652a16414cda, 1
	.section	".note.GNU-stack","",@progbits
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .offset:         8
        .size:           4
        .value_kind:     by_value
      - .offset:         16
        .size:           4
        .value_kind:     hidden_block_count_x
      - .offset:         20
        .size:           4
        .value_kind:     hidden_block_count_y
      - .offset:         24
        .size:           4
        .value_kind:     hidden_block_count_z
      - .offset:         28
        .size:           2
        .value_kind:     hidden_group_size_x
      - .offset:         30
        .size:           2
        .value_kind:     hidden_group_size_y
      - .offset:         32
        .size:           2
        .value_kind:     hidden_group_size_z
      - .offset:         34
        .size:           2
        .value_kind:     hidden_remainder_x
      - .offset:         36
        .size:           2
        .value_kind:     hidden_remainder_y
      - .offset:         38
        .size:           2
        .value_kind:     hidden_remainder_z
      - .offset:         56
        .size:           8
        .value_kind:     hidden_global_offset_x
      - .offset:         64
        .size:           8
        .value_kind:     hidden_global_offset_y
      - .offset:         72
        .size:           8
        .value_kind:     hidden_global_offset_z
      - .offset:         80
        .size:           2
        .value_kind:     hidden_grid_dims
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 272
    .max_flat_workgroup_size: 1024
    .name:           _Z7collatzPii
    .private_segment_fixed_size: 0
    .sgpr_count:     16
    .sgpr_spill_count: 0
    .symbol:         _Z7collatzPii.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     6
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx90a
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
