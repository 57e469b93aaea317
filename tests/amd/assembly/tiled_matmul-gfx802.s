	.amdgcn_target "amdgcn-amd-amdhsa--gfx802"
	.amdhsa_code_object_version 6
	.text
	.protected	_Z12tiled_matmulPKfS0_Pfi
	.globl	_Z12tiled_matmulPKfS0_Pfi
	.type	_Z12tiled_matmulPKfS0_Pfi,@function
_Z12tiled_matmulPKfS0_Pfi:
.Lfunc_begin0:
	.file	1 "examples/amd" "tiled_matmul.hip"
	.loc	1 14 22 prologue_end
	s_load_dword s8, s[4:5], 0x18
	s_load_dwordx4 s[0:3], s[4:5], 0x0
	s_load_dwordx2 s[4:5], s[4:5], 0x10
	.loc	1 15 24
	s_lshl_b32 s7, s7, 4
	.loc	1 15 31 is_stmt 0
	v_add_u32_e32 v2, vcc, s7, v1
	s_waitcnt lgkmcnt(0)
	v_mul_lo_u32 v3, s8, v2
	.loc	1 16 24 is_stmt 1
	s_lshl_b32 s6, s6, 4
	.loc	1 18 27
	s_cmp_lt_i32 s8, 1
	.loc	1 18 3 is_stmt 0
	s_cbranch_scc1 .LBB0_3
	.loc	1 0 3
	v_lshlrev_b32_e32 v5, 6, v1
	.loc	1 18 3
	v_mul_lo_u32 v1, v1, s8
	v_lshlrev_b32_e32 v2, 2, v0
	v_add_u32_e32 v6, vcc, v5, v2
	v_add_u32_e32 v1, vcc, v0, v1
	v_add_u32_e32 v7, vcc, 0x400, v2
	v_add_u32_e32 v1, vcc, s6, v1
	s_lshl_b32 s7, s8, 4
	v_add_u32_e32 v8, vcc, v0, v3
	v_mov_b32_e32 v4, 0
	s_mov_b32 s9, 0
	v_mov_b32_e32 v9, s1
	v_mov_b32_e32 v10, s3
	s_mov_b32 m0, -1
.LBB0_2:
	.loc	1 20 17 is_stmt 1
	v_ashrrev_i32_e32 v2, 31, v1
	.loc	1 19 17
	v_add_u32_e32 v11, vcc, s9, v8
	.loc	1 20 17
	v_lshlrev_b64 v[13:14], 2, v[1:2]
	.loc	1 19 17
	v_ashrrev_i32_e32 v12, 31, v11
	v_lshlrev_b64 v[11:12], 2, v[11:12]
	.loc	1 20 17
	v_add_u32_e32 v13, vcc, s2, v13
	v_addc_u32_e32 v14, vcc, v10, v14, vcc
	.loc	1 19 17
	v_add_u32_e32 v11, vcc, s0, v11
	v_addc_u32_e32 v12, vcc, v9, v12, vcc
	.loc	1 20 17
	flat_load_dword v2, v[13:14]
	.loc	1 19 17
	flat_load_dword v11, v[11:12]
	.loc	1 18 37
	s_add_i32 s9, s9, 16
	.loc	1 18 27 is_stmt 0
	v_add_u32_e32 v1, vcc, s7, v1
	s_cmp_ge_i32 s9, s8
	.loc	1 0 0
	s_waitcnt vmcnt(0)
	ds_write2st64_b32 v6, v11, v2 offset1:4
	.loc	1 21 5 is_stmt 1
	s_waitcnt lgkmcnt(0)
	s_barrier
	.loc	1 23 43
	ds_read_b128 v[11:14], v5
	.loc	1 23 54 is_stmt 0
	ds_read2_b32 v[19:20], v7 offset1:16
	ds_read2_b32 v[23:24], v7 offset0:32 offset1:48
	.loc	1 23 43
	ds_read_b128 v[15:18], v5 offset:16
	.loc	1 23 54
	ds_read2_b32 v[25:26], v7 offset0:64 offset1:80
	ds_read2_b32 v[27:28], v7 offset0:96 offset1:112
	.loc	1 23 40
	s_waitcnt lgkmcnt(4)
	v_mac_f32_e32 v4, v11, v19
	v_mac_f32_e32 v4, v12, v20
	s_waitcnt lgkmcnt(3)
	v_mac_f32_e32 v4, v13, v23
	v_mac_f32_e32 v4, v14, v24
	s_waitcnt lgkmcnt(1)
	v_mac_f32_e32 v4, v15, v25
	v_mac_f32_e32 v4, v16, v26
	s_waitcnt lgkmcnt(0)
	v_mac_f32_e32 v4, v17, v27
	.loc	1 23 43
	ds_read_b128 v[19:22], v5 offset:32
	ds_read_b128 v[11:14], v5 offset:48
	.loc	1 23 54
	ds_read2_b32 v[23:24], v7 offset0:128 offset1:144
	ds_read2_b32 v[29:30], v7 offset0:160 offset1:176
	.loc	1 23 40
	v_mac_f32_e32 v4, v18, v28
	.loc	1 23 54
	ds_read2_b32 v[15:16], v7 offset0:192 offset1:208
	ds_read2_b32 v[17:18], v7 offset0:224 offset1:240
	.loc	1 23 40
	s_waitcnt lgkmcnt(3)
	v_mac_f32_e32 v4, v19, v23
	v_mac_f32_e32 v4, v20, v24
	s_waitcnt lgkmcnt(2)
	v_mac_f32_e32 v4, v21, v29
	v_mac_f32_e32 v4, v22, v30
	s_waitcnt lgkmcnt(1)
	v_mac_f32_e32 v4, v11, v15
	v_mac_f32_e32 v4, v12, v16
	s_waitcnt lgkmcnt(0)
	v_mac_f32_e32 v4, v13, v17
	v_mac_f32_e32 v4, v14, v18
	.loc	1 24 5 is_stmt 1
	s_barrier
	.loc	1 18 3
	s_cbranch_scc0 .LBB0_2
	s_branch .LBB0_4
.LBB0_3:
	.loc	1 0 3 is_stmt 0
	v_mov_b32_e32 v4, 0
.LBB0_4:
	.loc	1 16 31 is_stmt 1
	v_add_u32_e32 v0, vcc, s6, v0
	.loc	1 26 13
	v_add_u32_e32 v0, vcc, v3, v0
	.loc	1 26 3 is_stmt 0
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshlrev_b64 v[0:1], 2, v[0:1]
	v_mov_b32_e32 v2, s5
	v_add_u32_e32 v0, vcc, s4, v0
	v_addc_u32_e32 v1, vcc, v2, v1, vcc
	.loc	1 26 20
	flat_store_dword v[0:1], v4
	.loc	1 27 1 is_stmt 1
	s_endpgm
.Ltmp0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel _Z12tiled_matmulPKfS0_Pfi
		.amdhsa_group_segment_fixed_size 2048
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 28
		.amdhsa_user_sgpr_count 6
		.amdhsa_user_sgpr_private_segment_buffer 1
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_flat_scratch_init 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_system_sgpr_private_segment_wavefront_offset 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 1
		.amdhsa_next_free_vgpr 31
		.amdhsa_next_free_sgpr 94
		.amdhsa_reserve_vcc 1
		.amdhsa_reserve_flat_scratch 0
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 0
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
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
	.size	_Z12tiled_matmulPKfS0_Pfi, .Lfunc_end0-_Z12tiled_matmulPKfS0_Pfi
	.protected	drywarp_entry
	.type	drywarp_entry,@object
	.data
	.globl	drywarp_entry
drywarp_entry:
	.quad	_Z12tiled_matmulPKfS0_Pfi
	.size	drywarp_entry, 8
	.type	__hip_cuid_54a58cd6034fc92b,@object
	.section	.bss,"aw",@nobits
	.globl	__hip_cuid_54a58cd6034fc92b
__hip_cuid_54a58cd6034fc92b:
	.size	__hip_cuid_54a58cd6034fc92b, 1
	.section	".note.GNU-stack","",@progbits
	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         8
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         16
        .size:           8
        .value_kind:     global_buffer
      - .offset:         24
        .size:           4
        .value_kind:     by_value
    .group_segment_fixed_size: 2048
    .kernarg_segment_align: 8
    .kernarg_segment_size: 28
    .max_flat_workgroup_size: 1024
    .name:           _Z12tiled_matmulPKfS0_Pfi
    .private_segment_fixed_size: 0
    .sgpr_count:     96
    .sgpr_spill_count: 0
    .symbol:         _Z12tiled_matmulPKfS0_Pfi.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     31
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx802
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
